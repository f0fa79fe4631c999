// Package awstest simulates the AWS services of the node pool over the wire: EC2, DynamoDB, SQS and
// CloudWatch. moto's server has the resources ([StartMoto]). Between it and the SDK is a proxy
// ([Cloud]) that adds features which moto lacks, with EC2's documented semantics (client tokens,
// shortages, delayed visibility), injects faults ([Fault]), and records every call. Each Cloud is a
// separate account, so that several share one server. All servers listen on loopback and end with
// the test.
package awstest
