"""Where files lie: a folder, a bucket, a host. Each gives copies, and never follows a link out."""
