package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/prices"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// callTimeout bounds a call of a provider, the wait for the token bucket and a second try included.
	callTimeout = 20 * time.Second
	// maxRetryDelay keeps a second try within a tick.
	maxRetryDelay = 2 * time.Second
	// visibleWithin is how long EC2 may say of an instance that has just been launched that there is none.
	visibleWithin = 5 * time.Minute
)

// Options say what a [Provider] is made for.
type Options struct {
	// Cluster tells the cluster of the pool from all others that there are, ever: the UID of its namespace kube-system. It
	// and Pool, the name of the pool, are the values of the tags that tell the pool's instances.
	Cluster, Pool string
	Spec          v1alpha1.EC2Provider
	// MaxPrice is the most that an hour of a Spot instance may cost, in US dollars; "" is the On-Demand price.
	MaxPrice string
	// Template tells what is known of new nodes: labels, and what pods can use of them.
	Template v1alpha1.NodeTemplate
	// Spot says that the pool has Spot instances, whose prices decide as well.
	Spot bool
	// Prices are those of a file; nil: AWS is asked for them where they decide.
	Prices prices.Prices

	// Limits are shared by all providers of a process; nil is limits of its own, with DefaultShare.
	Limits *Limits
	// Load changes how the SDK is set up; by default credentials are found as by every AWS client.
	Load []func(*config.LoadOptions) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	retryDelay time.Duration // the longest wait before a second try; 0 is maxRetryDelay
}

// Provider launches and terminates the instances of one pool. Its methods may be called from any goroutine.
type Provider struct {
	options Options
	prefix  string // of tags, with the slash
	client  *ec2.Client
	pricing *pricing.Client
	// pageSize is how many instances are asked for at once.
	pageSize int32

	mu       sync.Mutex
	types    map[string]types.InstanceTypeInfo // of the pool; nil until they have been learned
	launched map[string]time.Time              // ids of instances that EC2 may not know yet
	current  currentVersion                    // of the launch template
	hardware hardware
	// selection is the types that meet the requirements; nil until they have been found.
	selection *selection
	quotes    quotes
}

var _ provider.Provider = (*Provider)(nil)

// New makes a provider. It makes no call.
func New(ctx context.Context, o Options) (*Provider, error) {
	o.Spec.Default()
	prefix := o.Spec.TagPrefix + "/"
	if err := checkTags(prefix, o); err != nil {
		return nil, err
	}
	if o.Limits == nil {
		o.Limits = NewLimits(DefaultShare)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	load := append([]func(*config.LoadOptions) error{config.WithRegion(o.Spec.Region)}, o.Load...)
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("set up the AWS SDK: %w", err)
	}
	twice := func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = 2, cmp.Or(o.retryDelay, maxRetryDelay) }
	client := ec2.NewFromConfig(loaded, func(c *ec2.Options) {
		if o.Spec.Endpoint != "" {
			c.BaseEndpoint = aws.String(o.Spec.Endpoint)
		}
		c.Retryer = retry.NewStandard(twice)
		c.APIOptions = append(c.APIOptions, o.Limits.middleware(o.Spec.Region))
	})
	quoting := pricing.NewFromConfig(loaded, func(c *pricing.Options) {
		c.Region, c.Retryer = pricingRegion, retry.NewStandard(twice)
	})
	return &Provider{options: o, prefix: prefix, client: client, pricing: quoting, pageSize: maxPageSize, launched: map[string]time.Time{}}, nil
}

// checkTags finds tags that EC2 would not take, or that would say that an instance is somebody else's.
func checkTags(prefix string, o Options) error {
	if o.Cluster == "" {
		return errors.New("cluster: must not be empty: it is the value of the tag " + prefix + clusterTag)
	}
	if o.Pool == "" {
		return errors.New("pool: must not be empty: it is the value of the tag " + prefix + poolTag)
	}
	if strings.HasPrefix(strings.ToLower(prefix), "aws:") {
		return fmt.Errorf("tagPrefix: %q: must not begin with aws:, which EC2 keeps for itself", prefix)
	}
	for key := range o.Spec.Tags {
		if strings.HasPrefix(key, prefix) {
			return fmt.Errorf("tags: %q: must not begin with the tagPrefix %q, which tells whose an instance is", key, prefix)
		}
		if owner := ownedBy(map[string]string{key: ""}); owner != "" {
			return fmt.Errorf("tags: %q: must not be a tag that marks instances of %s", key, owner)
		}
	}
	return nil
}

// remember keeps in mind that an instance was launched, as EC2 may deny it for a while.
func (p *Provider) remember(id string) {
	now := p.options.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, at := range p.launched {
		if now.Sub(at) > visibleWithin {
			delete(p.launched, old)
		}
	}
	p.launched[id] = now
}

// mayAppear tells whether an instance that EC2 does not know may have been launched just now.
func (p *Provider) mayAppear(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.launched[id]
	return ok && p.options.Now().Sub(at) <= visibleWithin
}
