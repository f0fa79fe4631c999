// Package interruption takes from an SQS queue what EC2 says of instances that it takes back.
package interruption

import (
	_ "github.com/aws/aws-sdk-go-v2/service/sqs"
)
