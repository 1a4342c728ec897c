"""Speed and memory of the package against its peers."""
