package ec2

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// sold returns prices of types that meet the requirements of priced, and of others.
func sold() map[string]awstest.Price {
	zones := func(a, b string) map[string]string {
		return map[string]string{awstest.Region + "a": a, awstest.Region + "b": b}
	}
	out := map[string]awstest.Price{
		"m5.large":  {OnDemand: "0.1150000000", Spot: zones("0.0510", "0.0500")},
		"c5.large":  {OnDemand: "0.0970000000", Spot: zones("0.0600", "0.0610")},
		"m5.xlarge": {OnDemand: "0.2300000000"},
		"t3.small":  {OnDemand: "0.0240000000"},
	}
	for i := range 2 * pricesPage { // of other types
		out[fmt.Sprintf("z9.%dxlarge", i)] = awstest.Price{OnDemand: "1.0000000000"}
	}
	return out
}

func (c cloud) priced(t *testing.T, change ...func(*Options)) (p *Provider, pass func(time.Duration)) {
	t.Helper()
	o := c.byRequirements(
		required(2, 4, "4Gi", func(r *v1alpha1.EC2Requirements) { r.AllowedTypes = []string{"m5.*", "c5.*"} }),
	)
	now := time.Now()
	o.Now = func() time.Time { return now }
	for _, f := range change {
		f(&o)
	}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	return p, func(d time.Duration) { now = now.Add(d) }
}

func onSpot(o *Options) { o.Spot = true }

func testPrices(t *testing.T, c cloud) {
	c.Sell(sold())
	p, pass := c.priced(t)
	offers := mustOffers(t, p)
	require.Equal(t, []string{"c5.large", "m5.large", "m5.xlarge", "c5.xlarge"}, typesOf(offers), "the last has no price")
	require.Equal(t, fleet.Price{OnDemand: new(0.097)}, offers[0].Price)
	require.Equal(t, fleet.Price{}, offers[len(offers)-1].Price)
	require.Empty(t, offers[0].PriceErr)
	require.Empty(t, c.Calls("DescribeSpotPriceHistory"), "the pool has no Spot instances")
	require.Equal(t, 3, c.pages("GetProducts"), "page by page")
	c.Forget()
	pass(onDemandFor - time.Second)
	mustOffers(t, p)
	require.Empty(t, c.Calls("GetProducts"), "they are read twice a day")
}

// pages counts the different requests of an operation: incomplete answers are requested again.
func (c cloud) pages(operation string) int {
	different := map[string]bool{}
	for _, call := range c.Calls(operation) {
		different[call.Params.Encode()+string(call.Body)] = true
	}
	return len(different)
}

func testSpotPrices(t *testing.T, c cloud) {
	c.Sell(sold())
	p, pass := c.priced(t, onSpot)
	offers := mustOffers(t, p)
	require.Equal(t, []string{"m5.large", "c5.large", "m5.xlarge", "c5.xlarge"}, typesOf(offers))
	for _, o := range offers[:2] {
		require.Equal(
			t, fleet.Price{OnDemand: new(0.115), Spot: new(map[string]float64{"a": 0.051, "b": 0.05}[o.Zone[len(o.Zone)-1:]])},
			o.Price, o.Zone,
		)
	}
	require.Equal(t, fleet.Price{OnDemand: new(0.115)}, offers[2].Price, "the third zone has no Spot price")

	// After a failed call the previous prices are used for an hour.
	c.Inject(
		awstest.Fault{
			Operation: "DescribeSpotPriceHistory", Do: awstest.Fail, Status: http.StatusForbidden,
			Code: "UnauthorizedOperation",
		},
	)
	pass(spotFor)
	offers = mustOffers(t, p)
	require.Equal(t, new(0.051), offers[0].Price.Spot)
	require.Contains(t, offers[0].PriceErr, "DescribeSpotPriceHistory")
	pass(time.Second)
	offers = mustOffers(t, p)
	require.Nil(t, offers[0].Price.Spot)
	require.Equal(t, []string{"c5.large", "m5.large", "m5.xlarge", "c5.xlarge"}, typesOf(offers), "by On-Demand price")
}

// testPricesRefused has offers without prices, smaller types first, with the reason.
func testPricesRefused(t *testing.T, c cloud) {
	remove := c.Inject(
		awstest.Fault{
			Service: awstest.Pricing, Do: awstest.Fail, Status: http.StatusBadRequest, Code: "AccessDeniedException",
		},
	)
	p, _ := c.priced(t)
	offers := mustOffers(t, p)
	require.Equal(t, []string{"c5.large", "m5.large", "c5.xlarge", "m5.xlarge"}, typesOf(offers))
	for _, o := range offers {
		require.Equal(t, fleet.Price{}, o.Price, "unknown is not 0")
		require.Contains(t, o.PriceErr, "GetProducts: Invalid")
	}
	remove()
	offers = mustOffers(t, p)
	require.Contains(t, offers[0].PriceErr, "the price list has no instance type of eu-central-1")
	c.Sell(sold())
	require.Empty(t, mustOffers(t, p)[0].PriceErr)
}

func testPricesOfAFile(t *testing.T, c cloud) {
	usd, err := prices.Parse([]byte("m5.large: {onDemand: 0.01}\nc5.xlarge: {spot: 0.001}"))
	require.NoError(t, err)
	p, _ := c.priced(t, onSpot, func(o *Options) { o.Prices = usd })
	offers := mustOffers(t, p)
	require.Equal(t, []string{"c5.xlarge", "m5.large", "c5.large", "m5.xlarge"}, typesOf(offers))
	require.Equal(t, fleet.Price{Spot: new(0.001)}, offers[0].Price)
	require.Empty(t, offers[0].PriceErr)
	require.Empty(t, c.Calls("GetProducts"))
	require.Empty(t, c.Calls("DescribeSpotPriceHistory"))
}

func testNoPricesOfNames(t *testing.T, c cloud) {
	c.Sell(sold())
	o := c.options("workers")
	o.Spot = true
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	offers := mustOffers(t, p)
	require.Equal(t, o.Spec.InstanceTypes, typesOf(offers), "named types are in order of preference")
	require.Equal(t, fleet.Price{}, offers[0].Price)
	require.Empty(t, c.Calls("DescribeSpotPriceHistory"))
}

func TestReadProduct(t *testing.T) {
	product := func(term string) string {
		return `{"product":{"attributes":{"instanceType":"m5.large"}},` +
			`"terms":{"OnDemand":{"a":{"priceDimensions":{` + term + `}}}}}`
	}
	name, usd, ok := readProduct(product(`"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.1150000000"}}`))
	require.True(t, ok)
	require.Equal(t, "m5.large", name)
	require.InDelta(t, 0.115, usd, 0)
	for why, text := range map[string]string{
		"no JSON":          `{`,
		"no type":          `{"product":{}}`,
		"no term":          product(``),
		"0":                product(`"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.0000000000"}}`),
		"another currency": product(`"b":{"unit":"Hrs","pricePerUnit":{"CNY":"0.1150000000"}}`),
		"not by the hour":  product(`"b":{"unit":"Quantity","pricePerUnit":{"USD":"0.1150000000"}}`),
		"no number":        product(`"b":{"unit":"Hrs","pricePerUnit":{"USD":"free"}}`),
		"two prices": product(
			`"b":{"unit":"Hrs","pricePerUnit":{"USD":"1"}},"c":{"unit":"Hrs","pricePerUnit":{"USD":"2"}}`,
		),
		"infinite": product(`"b":{"unit":"Hrs","pricePerUnit":{"USD":"Inf"}}`),
	} {
		_, _, ok := readProduct(text)
		require.False(t, ok, why)
	}
}
