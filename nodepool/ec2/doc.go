// Package ec2 launches the instances of a pool as EC2 instances.
package ec2

import (
	_ "github.com/aws/aws-sdk-go-v2/config"
	_ "github.com/aws/aws-sdk-go-v2/credentials"
	_ "github.com/aws/aws-sdk-go-v2/service/ec2"
	_ "github.com/aws/smithy-go"
	_ "golang.org/x/time/rate"
)
