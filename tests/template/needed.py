"""What each function needs of AWS, as action and resource: what its role allows, and what it is seen to call."""

LOG_IN = {("secretsmanager:GetSecretValue", "DatabaseInstance")}
# Beyond the log in to the database, which all have: function -> what it does, and on what.
NEEDED = {
    "Admin": {("kms:Encrypt", "SigningKey"), ("kms:Decrypt", "SigningKey")},
    "Api": {("sqs:SendMessage", "RunQueue"), ("kms:Encrypt", "SigningKey"), ("kms:Decrypt", "SigningKey")},
    "Authorizer": set[tuple[str, str]](),
    "DeadLetter": set[tuple[str, str]](),
    "Delivery": {
        ("sqs:ChangeMessageVisibility", "RunQueue"),
        ("sqs:SendMessage", "RunQueue"),
        ("kms:Decrypt", "SigningKey"),
        ("events:PutEvents", "EventBus"),
    },
    "Maintenance": set[tuple[str, str]](),
    "Migrate": set[tuple[str, str]](),
    "Planner": {("sqs:SendMessage", "RunQueue"), ("events:PutEvents", "EventBus")},
}
# What Lambda itself does under a function's role: the failures of asynchronous invocations are sent with it.
BY_LAMBDA = {("sqs:SendMessage", "FailureQueue")}
