"""A site's data, from its files to rows and labels."""
