"""The methods that the server can run, one file each."""
