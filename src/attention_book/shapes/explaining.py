def explain(error, function, args, kwargs, frame, site): pass
def show_steps(error, text): pass
