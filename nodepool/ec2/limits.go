package ec2

import (
	"context"
	"fmt"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"
)

// bucket is a token bucket as EC2 documents it.
type bucket struct {
	size   int        // calls at once
	refill rate.Limit // calls per second
}

// buckets are EC2's documented buckets for the calls of this package. EC2 has one set for each account and region.
var buckets = map[string]bucket{
	"RunInstances":                   {5, 2},
	"CreateFleet":                    {5, 2}, // launches instances like RunInstances
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

// launches is the key of launchBucket.
const launches = "instances"

// launchBucket is EC2's bucket of launched instances: each takes a token, in addition to the token of the call.
var launchBucket = bucket{1000, 2}

// callTimeout bounds a call to EC2, with the wait for the token bucket and a second try.
const callTimeout = 20 * time.Second

// DefaultShare is the share of EC2's buckets that is used; the rest is left to other clients of the account.
const DefaultShare = 0.5

// Limits keep the calls of all providers that share them below EC2's limits, in each region. Its methods may be called
// from any goroutine.
type Limits struct {
	share    float64
	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by region and operation
}

// NewLimits returns limits that use a share of EC2's buckets, which start full. EC2 may throttle a share above 1.
func NewLimits(share float64) *Limits {
	return &Limits{share: share, limiters: map[string]*rate.Limiter{}}
}

// wait waits for a token. It fails at once if the context would end earlier.
func (l *Limits) wait(ctx context.Context, region, operation string) error {
	b, ok := buckets[operation]
	if !ok {
		return nil
	}
	return takeTokens(ctx, l.limiter(b, region, operation), 1)
}

// waitForInstances waits until n instances may be launched. It fails as wait does.
func (l *Limits) waitForInstances(ctx context.Context, region string, n int) error {
	limiter := l.limiter(launchBucket, region, launches)
	return takeTokens(ctx, limiter, min(n, limiter.Burst()))
}

func takeTokens(ctx context.Context, limiter *rate.Limiter, n int) error {
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

// middleware makes every attempt of a client take a token.
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
