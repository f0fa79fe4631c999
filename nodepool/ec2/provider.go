package ec2

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// maxRetryDelay keeps a second try within a tick.
const maxRetryDelay = 2 * time.Second

// Provider launches and terminates the instances of one pool. Its methods may be called from any goroutine.
type Provider struct {
	launcher  *launcher
	instances *instances
	catalog   *catalog
	version   *templateVersion
	hardware  *hardware
}

var _ provider.Provider = (*Provider)(nil)

// New returns a provider. It makes no call.
func New(ctx context.Context, o Options) (*Provider, error) {
	o = o.withDefaults()
	owner := o.identity()
	if err := owner.validate(); err != nil {
		return nil, err
	}
	sdk, err := o.sdk(ctx)
	if err != nil {
		return nil, err
	}
	twice := func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = 2, cmp.Or(o.retryDelay, maxRetryDelay) }
	client := newClient(ec2.NewFromConfig(sdk, func(c *ec2.Options) {
		c.Retryer = retry.NewStandard(twice)
		c.APIOptions = append(c.APIOptions, o.Limits.middleware(o.Spec.Region))
	}))
	quotes := pricing.NewFromConfig(sdk, func(c *pricing.Options) {
		c.Region, c.Retryer = pricingRegion, retry.NewStandard(twice)
	})
	existing := newInstances(client, owner, o.Spec.Region, o.Now)
	return &Provider{
		launcher:  newLauncher(client, existing, o),
		instances: existing,
		catalog:   newCatalog(client, quotes, o),
		version:   &templateVersion{client: client, spec: o.Spec, now: o.Now},
		hardware:  &hardware{client: client, now: o.Now},
	}, nil
}

// Launch implements [provider.Provider].
func (p *Provider) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.launcher.launch(ctx, l)
}

// List implements [provider.Provider].
func (p *Provider) List(ctx context.Context) ([]fleet.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := p.instances.living(ctx)
	if err != nil {
		return nil, err
	}
	list := p.instances.translate(described)
	p.version.markOutdated(ctx, described, list, p.catalog.types.meeting())
	p.hardware.markOutdated(ctx, list)
	return list, nil
}

// Find implements [provider.Provider].
func (p *Provider) Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.instances.find(ctx, refs)
}

// Terminate implements [provider.Provider]. For an instance that was launched minutes ago and that EC2 does not know,
// the outcome is [provider.Unknown].
func (p *Provider) Terminate(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.instances.terminate(ctx, id)
}

// MarkJoinFailed implements [provider.Provider]. It succeeds for an instance that no longer exists.
func (p *Provider) MarkJoinFailed(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.instances.markJoinFailed(ctx, id)
}

// Offers implements [provider.Provider].
func (p *Provider) Offers(ctx context.Context) ([]provider.Offer, error) {
	return p.catalog.offers(ctx)
}
