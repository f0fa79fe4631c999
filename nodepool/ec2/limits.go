package ec2

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
)

// bucket is a token bucket of EC2's: how many calls may come at once, and how many each second after that.
type bucket struct {
	size   int
	refill rate.Limit
}

// buckets are those that EC2 documents for the calls that are made here, which it keeps for each account and region.
var buckets = map[string]bucket{
	"RunInstances":                   {5, 2},
	"CreateFleet":                    {5, 2}, // it launches as RunInstances does
	"TerminateInstances":             {100, 5},
	"CreateTags":                     {100, 10},
	"DescribeInstances":              {100, 20},
	"DescribeInstanceTypes":          {100, 20},
	"DescribeInstanceTypeOfferings":  {100, 20},
	"DescribeSpotPriceHistory":       {100, 20},
	"DescribeLaunchTemplates":        {100, 20},
	"DescribeImages":                 {100, 20},
	"DescribeLaunchTemplateVersions": {100, 20},
}

// instances is the bucket of EC2 that each instance of a launch takes a token of, in addition to the one for the call.
const instances = "instances"

// resources are the buckets for what calls make.
var resources = map[string]bucket{instances: {1000, 2}}

// DefaultShare of EC2's buckets is used; what remains is for others of the account.
const DefaultShare = 0.5

// errBucketEmpty says that a call was not sent, as there was no token for it in time.
var errBucketEmpty = errors.New("not sent: too many calls of its kind have been made")

// Limits keep the calls of all providers that share them below what EC2 allows, in each region. They may be used from any
// goroutine.
type Limits struct {
	share    float64
	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by region and operation
}

// NewLimits returns limits that use a share of EC2's buckets, which are full. Above 1 EC2 may find the calls too many.
func NewLimits(share float64) *Limits {
	return &Limits{share: share, limiters: map[string]*rate.Limiter{}}
}

// wait waits for a token. It fails at once if the context would end before there is one.
func (l *Limits) wait(ctx context.Context, region, operation string) error {
	b, ok := buckets[operation]
	if !ok {
		return nil
	}
	return take(ctx, l.limiter(b, region, operation), 1)
}

// waitForInstances waits until n instances may be launched, in the same way.
func (l *Limits) waitForInstances(ctx context.Context, region string, n int) error {
	limiter := l.limiter(resources[instances], region, instances)
	return take(ctx, limiter, min(n, limiter.Burst()))
}

func take(ctx context.Context, limiter *rate.Limiter, n int) error {
	err := limiter.WaitN(ctx, n)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", errBucketEmpty, err)
}

func (l *Limits) limiter(b bucket, region, operation string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := region + " " + operation
	limiter := l.limiters[key]
	if limiter == nil {
		limiter = rate.NewLimiter(b.refill*rate.Limit(l.share), max(1, int(float64(b.size)*l.share)))
		l.limiters[key] = limiter
	}
	return limiter
}

// middleware has every attempt of a client take a token.
func (l *Limits) middleware(region string) func(*middleware.Stack) error {
	limit := middleware.FinalizeMiddlewareFunc("ForesailLimits", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if err := l.wait(ctx, region, awsmiddleware.GetOperationName(ctx)); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, err
		}
		return next.HandleFinalize(ctx, in)
	})
	return func(stack *middleware.Stack) error { return stack.Finalize.Insert(limit, "Retry", middleware.After) }
}
