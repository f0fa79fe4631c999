// Package dynamodb keeps the journals of pools in a DynamoDB table.
package dynamodb

import (
	_ "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)
