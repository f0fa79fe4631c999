# What a WorkerPool of Foresail needs in AWS: launch template, role of the workers, interruption queue with its rules, and the
# policy of Foresail. One module per pool. The policies are policy.json and worker-policy.json beside this file.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "cluster" {
  type        = string
  description = "UID of the namespace kube-system"
}

variable "pool" {
  type        = string
  description = "Name of the WorkerPool"
}

variable "image_id" {
  type        = string
  description = "ID of an image, or resolve:ssm:/aws/service/... with a version of its own"
}

variable "security_groups" {
  type        = list(string)
  description = "Security groups of the workers"
}

variable "user_data" {
  type        = string
  description = "User data that joins the cluster, as text"
}

variable "volume_size" {
  type        = number
  description = "Size of the root volume in GiB"
  default     = 40
}

variable "root_device" {
  type        = string
  description = "Device of the root volume, as the image names it (Ubuntu has /dev/sda1)"
  default     = "/dev/xvda"
}

variable "token_parameter" {
  type        = string
  description = "SecureString in Parameter Store with the join token, such as /foresail/workers/token; empty on EKS"
  default     = ""
}

variable "worker_policies" {
  type        = list(string)
  description = "ARNs of further policies of the workers; on EKS those of a node role"
  default     = []
}

variable "controller_service" {
  type        = string
  description = "Who gives Foresail its role: pods.eks.amazonaws.com (EKS Pod Identity), or ec2.amazonaws.com (the instance that it runs on)"
  default     = "pods.eks.amazonaws.com"
}

variable "oidc_provider" {
  type        = string
  description = "For IRSA the OIDC issuer of the cluster without https://, such as oidc.eks.eu-central-1.amazonaws.com/id/0123; it replaces controller_service"
  default     = ""
  validation {
    condition     = !startswith(var.oidc_provider, "https://")
    error_message = "The variable oidc_provider is the issuer without https://."
  }
}

variable "service_account" {
  type        = string
  description = "For IRSA the namespace and the name of Foresail's ServiceAccount"
  default     = "foresail-system:foresail"
}

variable "controller_role" {
  type        = string
  description = "Name of an existing role of Foresail that gets the policy, as for a second pool; empty makes one"
  default     = ""
}

variable "journal_table" {
  type        = string
  description = "Table of state.dynamodb, if the pool has one"
  default     = ""
}

variable "metric_namespace" {
  type        = string
  description = "notify.cloudWatchNamespace, if the pool has one"
  default     = ""
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  values = {
    Partition       = data.aws_partition.current.partition
    Region          = data.aws_region.current.name
    Account         = data.aws_caller_identity.current.account_id
    Cluster         = var.cluster
    Pool            = var.pool
    LaunchTemplate  = aws_launch_template.workers.id
    WorkerRole      = aws_iam_role.workers.name
    Queue           = aws_sqs_queue.interruptions.name
    JournalTable    = var.journal_table
    MetricNamespace = var.metric_namespace
    TokenParameter  = var.token_parameter
  }
  # Who may take Foresail's role.
  trust = var.oidc_provider == "" ? jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = var.controller_service }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
    }) : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Federated = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:oidc-provider/${var.oidc_provider}" }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${var.oidc_provider}:aud" = "sts.amazonaws.com"
          "${var.oidc_provider}:sub" = "system:serviceaccount:${var.service_account}"
        }
      }
    }]
  })
  # Statements that are left out if what they are for is not used.
  optional = {
    KeepTheJournal = var.journal_table
    SendMetrics    = var.metric_namespace
  }
}

# The workers.

resource "aws_iam_role" "workers" {
  name_prefix = "foresail-workers-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "workers" {
  count  = var.token_parameter == "" ? 0 : 1
  role   = aws_iam_role.workers.name
  policy = templatefile("${path.module}/worker-policy.json", local.values)
}

resource "aws_iam_role_policy_attachment" "workers" {
  for_each   = toset(var.worker_policies)
  role       = aws_iam_role.workers.name
  policy_arn = each.value
}

resource "aws_iam_instance_profile" "workers" {
  name_prefix = "foresail-workers-"
  role        = aws_iam_role.workers.name
}

resource "aws_launch_template" "workers" {
  name_prefix            = "foresail-workers-"
  image_id               = var.image_id
  vpc_security_group_ids = var.security_groups
  user_data              = base64encode(var.user_data)
  update_default_version = true

  iam_instance_profile {
    arn = aws_iam_instance_profile.workers.arn
  }

  # IMDSv2 only, and one hop: pods with a network of their own cannot reach the role of the worker.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = var.root_device
    ebs {
      volume_size           = var.volume_size
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }
}

# The interruption queue.

resource "aws_sqs_queue" "interruptions" {
  name_prefix               = "foresail-interruptions-"
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "interruptions" {
  queue_url = aws_sqs_queue.interruptions.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "RulesSend"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = {
          ArnEquals = { "aws:SourceArn" = [aws_cloudwatch_event_rule.instances.arn, aws_cloudwatch_event_rule.health.arn] }
        }
      },
      {
        Sid       = "NobodyWithoutTLS"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "instances" {
  name_prefix = "foresail-instances-"
  event_pattern = jsonencode({
    source = ["aws.ec2"]
    detail-type = [
      "EC2 Spot Instance Interruption Warning",
      "EC2 Instance Rebalance Recommendation",
      "EC2 Instance State-change Notification",
    ]
  })
}

resource "aws_cloudwatch_event_rule" "health" {
  name_prefix = "foresail-health-"
  event_pattern = jsonencode({
    source      = ["aws.health"]
    detail-type = ["AWS Health Event"]
    detail      = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
  })
}

resource "aws_cloudwatch_event_target" "queue" {
  for_each = {
    instances = aws_cloudwatch_event_rule.instances.name
    health    = aws_cloudwatch_event_rule.health.name
  }
  rule      = each.value
  target_id = "queue"
  arn       = aws_sqs_queue.interruptions.arn
}

# Foresail.

resource "aws_iam_role" "controller" {
  count              = var.controller_role == "" ? 1 : 0
  name_prefix        = "foresail-"
  assume_role_policy = local.trust
}

resource "aws_iam_instance_profile" "controller" {
  count       = var.controller_role == "" && var.oidc_provider == "" && var.controller_service == "ec2.amazonaws.com" ? 1 : 0
  name_prefix = "foresail-"
  role        = aws_iam_role.controller[0].name
}

resource "aws_iam_policy" "controller" {
  name_prefix = "foresail-"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      for s in jsondecode(templatefile("${path.module}/policy.json", local.values)).Statement :
      s if lookup(local.optional, s.Sid, "used") != ""
    ]
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  role       = var.controller_role == "" ? aws_iam_role.controller[0].name : var.controller_role
  policy_arn = aws_iam_policy.controller.arn
}

output "launch_template" {
  description = "provider.ec2.launchTemplate"
  value       = aws_launch_template.workers.id
}

output "interruption_queue" {
  description = "provider.ec2.interruptionQueue"
  value       = aws_sqs_queue.interruptions.url
}

output "worker_role" {
  description = "ARN of the role of the workers, for an access entry of EKS"
  value       = aws_iam_role.workers.arn
}

output "controller_role" {
  description = "ARN of the role of Foresail, unless it existed before"
  value       = one(aws_iam_role.controller[*].arn)
}
