// Package tell tells people what pools decide.
package tell

import (
	_ "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
)
