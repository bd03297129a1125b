"""A site's own data, from the files that it has to rows and labels."""
