package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
)

const (
	// pricingRegion has the endpoint of the prices of all regions.
	pricingRegion = "us-east-1"
	// onDemandFor is how long On-Demand prices are taken to stay the same.
	onDemandFor = 12 * time.Hour
	// spotFor is how long a Spot price is used that cannot be asked again.
	spotFor = time.Hour
	// Both are short, as a cycle of the pool waits for the answers. The first is a dozen pages.
	onDemandTimeout, spotTimeout = 7 * time.Second, 3 * time.Second
	pricesPage                   = 100
	spotPage                     = 1000
)

// inZone is an instance type in a zone.
type inZone struct{ instanceType, zone string }

// quotes are the prices that AWS told.
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

// prices returns what types cost, and why that is not known of all: from the file, or as AWS tells it. What cannot be asked
// is as it was for a while.
func (p *Provider) prices(ctx context.Context) (of func(name, zone string) fleet.Price, why string) {
	if file := p.options.Prices; file != nil {
		return func(name, _ string) fleet.Price { return file[name] }, ""
	}
	p.mu.Lock()
	q := p.quotes
	p.mu.Unlock()
	now := p.options.Now()
	var errs [2]error
	if q.onDemand == nil || now.Sub(q.onDemandAt) >= onDemandFor {
		var fresh map[string]float64
		if fresh, errs[0] = p.onDemandPrices(ctx); errs[0] == nil {
			q.onDemand, q.onDemandAt = fresh, now
		}
	}
	if p.options.Spot {
		var fresh map[inZone]float64
		if fresh, errs[1] = p.spotPrices(ctx); errs[1] == nil {
			q.spot, q.spotAt = fresh, now
		} else if now.Sub(q.spotAt) > spotFor {
			q.spot = nil
		}
	}
	p.mu.Lock()
	p.quotes = q
	p.mu.Unlock()
	if err := errors.Join(errs[:]...); err != nil {
		why = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return q.of, why
}

// onDemandPrices asks for the prices of Linux on shared hosts, without licenses, in the region of the pool.
func (p *Provider) onDemandPrices(ctx context.Context) (map[string]float64, error) {
	const op = "GetProducts"
	ctx, cancel := context.WithTimeout(ctx, onDemandTimeout)
	defer cancel()
	input := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(pricesPage)}
	for field, value := range map[string]string{
		"regionCode": p.options.Spec.Region, "operatingSystem": "Linux", "preInstalledSw": "NA", "tenancy": "Shared",
		"capacitystatus": "Used", "marketoption": "OnDemand", "operation": "RunInstances",
	} {
		input.Filters = append(input.Filters, pricingtypes.Filter{Field: aws.String(field), Type: pricingtypes.FilterTypeTermMatch, Value: aws.String(value)})
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
		return nil, classify(op, fmt.Errorf("the price list has no instance type of %s", p.options.Spec.Region))
	}
	return out, nil
}

// product is the part of a product of the price list that is read.
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

// readProduct returns what an hour of a product costs. A product that says it otherwise has no price: so has one of 0, as
// that is only told of what is paid for in another way.
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

// spotPrices asks for the Spot prices of this moment in the zones of the pool.
func (p *Provider) spotPrices(ctx context.Context) (map[inZone]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, spotTimeout)
	defer cancel()
	now := p.options.Now()
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(p.client, &ec2.DescribeSpotPriceHistoryInput{
		StartTime: &now, EndTime: &now, ProductDescriptions: []string{"Linux/UNIX"}, MaxResults: aws.Int32(spotPage),
		Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: p.zones()}},
	})
	newest := map[inZone]types.SpotPrice{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeSpotPriceHistory", err)
		}
		for _, s := range page.SpotPriceHistory {
			key := inZone{string(s.InstanceType), aws.ToString(s.AvailabilityZone)}
			if before, ok := newest[key]; !ok || aws.ToTime(s.Timestamp).After(aws.ToTime(before.Timestamp)) {
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

// cheapest returns the least that a type costs in any zone of the pool, in the market that the pool prefers; nil if that is
// not known. Spot costs at most as much as On-Demand.
func (p *Provider) cheapest(name string, of func(name, zone string) fleet.Price) *float64 {
	least := math.Inf(1)
	for _, zone := range p.zones() {
		price := of(name, zone)
		if price.OnDemand != nil {
			least = math.Min(least, *price.OnDemand)
		}
		if price.Spot != nil && p.options.Spot {
			least = math.Min(least, *price.Spot)
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	return &least
}
