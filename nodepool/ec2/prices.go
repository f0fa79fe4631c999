package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
)

const (
	// pricingRegion has an endpoint that returns the prices of all regions.
	pricingRegion = "us-east-1"
	// onDemandFor is how long On-Demand prices are cached.
	onDemandFor = 12 * time.Hour
	// spotFor is how long the previous Spot prices are used if a call fails.
	spotFor = time.Hour
	// onDemandTimeout and spotTimeout are short because a cycle of the pool waits for the answers. The first bounds a
	// dozen pages.
	onDemandTimeout, spotTimeout = 7 * time.Second, 3 * time.Second
	pricesPage                   = 100
	spotPage                     = 1000
)

// priceOf returns the price of an instance type in a zone.
type priceOf func(name, zone string) fleet.Price

// priceList reads the prices of instance types, from a file or from AWS, and caches them. Its methods may be called
// from any goroutine.
type priceList struct {
	client  *client
	pricing *pricing.Client
	file    prices.Prices // nil: AWS is queried
	region  string
	zones   []string
	useSpot bool
	now     func() time.Time

	mu   sync.Mutex
	last quotes
}

// inZone is an instance type in a zone.
type inZone struct{ instanceType, zone string }

// quotes are the last prices that AWS returned.
type quotes struct {
	onDemand           map[string]float64
	spot               map[inZone]float64
	onDemandAt, spotAt time.Time
}

// of returns the price of a type in a zone.
func (q quotes) of(name, zone string) fleet.Price {
	var p fleet.Price
	if usd, ok := q.onDemand[name]; ok {
		p.OnDemand = &usd
	}
	if usd, ok := q.spot[inZone{name, zone}]; ok {
		p.Spot = &usd
	}
	return p
}

// read returns the prices of types, and why some of them may be missing. After a failed call the previous prices are
// used for a while.
func (p *priceList) read(ctx context.Context) (of priceOf, why string) {
	if p.file != nil {
		return func(name, _ string) fleet.Price { return p.file[name] }, ""
	}
	p.mu.Lock()
	q := p.last
	p.mu.Unlock()
	now := p.now()
	var errs [2]error
	if q.onDemand == nil || now.Sub(q.onDemandAt) >= onDemandFor {
		var fresh map[string]float64
		if fresh, errs[0] = p.onDemand(ctx); errs[0] == nil {
			q.onDemand, q.onDemandAt = fresh, now
		}
	}
	if p.useSpot {
		var fresh map[inZone]float64
		if fresh, errs[1] = p.spot(ctx); errs[1] == nil {
			q.spot, q.spotAt = fresh, now
		} else if now.Sub(q.spotAt) > spotFor {
			q.spot = nil
		}
	}
	p.mu.Lock()
	p.last = q
	p.mu.Unlock()
	if err := errors.Join(errs[:]...); err != nil {
		why = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return q.of, why
}

// onDemand reads the prices of Linux on shared hosts, without licenses, in the pool's region.
func (p *priceList) onDemand(ctx context.Context) (map[string]float64, error) {
	const op = "GetProducts"
	ctx, cancel := context.WithTimeout(ctx, onDemandTimeout)
	defer cancel()
	input := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(pricesPage)}
	for field, value := range map[string]string{
		"regionCode": p.region, "operatingSystem": "Linux", "preInstalledSw": "NA", "tenancy": "Shared",
		"capacitystatus": "Used", "marketoption": "OnDemand", "operation": "RunInstances",
	} {
		input.Filters = append(input.Filters, pricingtypes.Filter{
			Field: aws.String(field), Type: pricingtypes.FilterTypeTermMatch, Value: aws.String(value),
		})
	}
	out := map[string]float64{}
	pages := pricing.NewGetProductsPaginator(p.pricing, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify(op, err)
		}
		for _, text := range page.PriceList {
			if name, usd, ok := readProduct(text); ok {
				out[name] = usd
			}
		}
	}
	if len(out) == 0 {
		return nil, classify(op, fmt.Errorf("the price list has no instance type of %s", p.region))
	}
	return out, nil
}

// product has the fields of a product of the price list that are read.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string            `json:"unit"`
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// readProduct returns the price of a product per hour. Other units are not read, and neither is a price of 0: such a
// product is paid for in another way.
func readProduct(text string) (name string, usd float64, ok bool) {
	var p product
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", 0, false
	}
	found := 0
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			v, valid := positive(d.PricePerUnit["USD"])
			if valid && strings.EqualFold(d.Unit, "hrs") {
				usd = v
				found++
			}
		}
	}
	name = p.Product.Attributes.InstanceType
	return name, usd, name != "" && found == 1
}

func positive(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}

// spot reads the current Spot prices in the zones of the pool.
func (p *priceList) spot(ctx context.Context) (map[inZone]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, spotTimeout)
	defer cancel()
	now := p.now()
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(p.client, &ec2.DescribeSpotPriceHistoryInput{
		StartTime: &now, EndTime: &now, ProductDescriptions: []string{"Linux/UNIX"}, MaxResults: aws.Int32(spotPage),
		Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: p.zones}},
	})
	newest := map[inZone]types.SpotPrice{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeSpotPriceHistory", err)
		}
		for _, s := range page.SpotPriceHistory {
			key := inZone{string(s.InstanceType), aws.ToString(s.AvailabilityZone)}
			if known, ok := newest[key]; !ok || aws.ToTime(s.Timestamp).After(aws.ToTime(known.Timestamp)) {
				newest[key] = s
			}
		}
	}
	out := map[inZone]float64{}
	for key, s := range newest {
		if usd, ok := positive(aws.ToString(s.SpotPrice)); ok {
			out[key] = usd
		}
	}
	return out, nil
}

// cheapest returns the lowest price of a type in any zone and market of the pool; nil if none is known.
func (p *priceList) cheapest(name string, of priceOf) *float64 {
	least := math.Inf(1)
	for _, zone := range p.zones {
		price := of(name, zone)
		if price.OnDemand != nil {
			least = math.Min(least, *price.OnDemand)
		}
		if price.Spot != nil && p.useSpot {
			least = math.Min(least, *price.Spot)
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	return &least
}
