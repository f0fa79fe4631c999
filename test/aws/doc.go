// Package awstest plays the AWS that the node pool talks to: EC2, DynamoDB, SQS and CloudWatch, over the wire.
//
// moto's server keeps the resources ([StartMoto]). Between it and the SDK stands a proxy ([Cloud]) that supplies what moto
// lacks, with EC2's documented semantics (client tokens, shortages, instances that cannot be seen yet), loses and refuses
// calls on demand ([Fault]), and records every call. Each Cloud is an account of its own, so that several share one server.
// Everything listens on loopback and ends with the test.
package awstest
