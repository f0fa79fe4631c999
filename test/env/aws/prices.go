package awstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Pricing is the name of the service in calls and faults. moto does not support it: the proxy answers.
const Pricing = "pricing"

// Price is the hourly price of an instance type in [Region], in AWS's format; "" = none.
type Price struct {
	OnDemand string
	Spot     map[string]string // by zone
}

// priceList has the prices of instance types.
type priceList struct {
	mu     sync.Mutex
	prices map[string]Price
}

// Sell sets the prices of instance types. Before, there are no On-Demand prices, and Spot prices are moto's.
func (l *priceList) Sell(prices map[string]Price) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prices = prices
}

func (l *priceList) sells() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prices != nil
}

// of returns the price of a type in a zone and market, 0 if there is none.
func (l *priceList) of(kind, zone, market string) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	price := l.prices[kind].OnDemand
	if market == "spot" {
		price = l.prices[kind].Spot[zone]
	}
	usd, _ := strconv.ParseFloat(price, 64)
	return usd
}

// products answers GetProducts in pages, with the prices and with products that a client must ignore.
func (l *priceList) products(call *Call) *answer {
	var input struct {
		MaxResults int
		NextToken  string
		Filters    []struct{ Field, Value string }
	}
	if err := json.Unmarshal(call.Body, &input); err != nil {
		return unreachable(call, err)
	}
	filters := map[string]string{}
	for _, f := range input.Filters {
		filters[f.Field] = f.Value
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	if filters["regionCode"] == Region && call.Region == "us-east-1" {
		for _, name := range slices.Sorted(maps.Keys(l.prices)) {
			if usd := l.prices[name].OnDemand; usd != "" {
				list = append(list, productOf(name, usd))
			}
		}
		list = append(list, `{"product":{"attributes":{"instanceType":"m5.free"}},"terms":{"OnDemand":{"x":`+
			`{"priceDimensions":{"y":{"unit":"Hrs","pricePerUnit":{"USD":"0.0000000000"}}}}}}}`, `{"product":{"attributes":{}}}`)
	}
	from, _ := strconv.Atoi(input.NextToken) // 0 without one
	rest := list[min(from, len(list)):]
	output := map[string]any{"FormatVersion": "aws_v1", "PriceList": rest[:min(input.MaxResults, len(rest))]}
	if len(rest) > input.MaxResults {
		output["NextToken"] = strconv.Itoa(from + input.MaxResults)
	}
	body, err := json.Marshal(output)
	if err != nil {
		panic(err) // of strings
	}
	return &answer{http.StatusOK, "application/x-amz-json-1.1", body}
}

func productOf(name, usd string) string {
	return fmt.Sprintf(`{"product":{"productFamily":"Compute Instance","attributes":{"instanceType":%q,"regionCode":%q}},`+
		`"serviceCode":"AmazonEC2","terms":{"OnDemand":{"SKU.JRTCKXETXF":{"priceDimensions":{"SKU.JRTCKXETXF.6YS6EN2CT7":`+
		`{"unit":"Hrs","pricePerUnit":{"USD":%q}}},"termAttributes":{}}}}}`, name, Region, usd)
}

// spotPrices answers DescribeSpotPriceHistory with the price of each type and zone, and an older one.
func (l *priceList) spotPrices(params url.Values) *answer {
	zones := values(params, "Filter.1.Value")
	l.mu.Lock()
	defer l.mu.Unlock()
	set := element("spotPriceHistorySet")
	for _, name := range slices.Sorted(maps.Keys(l.prices)) {
		for _, zone := range zones {
			if usd := l.prices[name].Spot[zone]; usd != "" {
				set.Nodes = append(set.Nodes,
					spotPrice(name, zone, "77", time.Hour), spotPrice(name, zone, usd, time.Minute))
			}
		}
	}
	tree := element("DescribeSpotPriceHistoryResponse", set)
	return &answer{http.StatusOK, xmlType, tree.bytes()}
}

func spotPrice(name, zone, usd string, ago time.Duration) *node {
	at := time.Now().Add(-ago).UTC().Format(time.RFC3339)
	return element("item", textOf("instanceType", name), textOf("productDescription", "Linux/UNIX"),
		textOf("spotPrice", usd), textOf("timestamp", at), textOf("availabilityZone", zone))
}
