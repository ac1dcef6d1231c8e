"""AWS services, one module each; the only room that imports boto3."""
