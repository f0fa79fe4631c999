package awstest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Pricing is the name of the service in calls and faults. moto does not have it: the proxy answers.
const Pricing = "pricing"

// Price is what an hour of an instance type costs in [Region], as AWS writes it; "" is not told.
type Price struct {
	OnDemand string
	Spot     map[string]string // by zone
}

// Sell has prices of instance types told from now on; before, there are none On-Demand, and those of Spot are moto's.
func (c *Cloud) Sell(prices map[string]Price) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ec2.prices = prices
}

func (c *Cloud) sells() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ec2.prices != nil
}

// products answers GetProducts, page by page, with what is sold and what no pool wants.
func (c *Cloud) products(call *Call) *answer {
	var input struct {
		MaxResults int
		NextToken  string
		Filters    []struct{ Field, Value string }
	}
	if err := json.Unmarshal(call.Body, &input); err != nil {
		return unreachable(call, err)
	}
	wanted := map[string]string{}
	for _, f := range input.Filters {
		wanted[f.Field] = f.Value
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	if wanted["regionCode"] == Region && call.Region == "us-east-1" {
		for _, name := range slices.Sorted(maps.Keys(c.ec2.prices)) {
			if usd := c.ec2.prices[name].OnDemand; usd != "" {
				list = append(list, productOf(name, usd))
			}
		}
		list = append(list, `{"product":{"attributes":{"instanceType":"m5.free"}},"terms":{"OnDemand":{"x":{"priceDimensions":{"y":{"unit":"Hrs","pricePerUnit":{"USD":"0.0000000000"}}}}}}}`, `{"product":{"attributes":{}}}`)
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
	return fmt.Sprintf(`{"product":{"productFamily":"Compute Instance","attributes":{"instanceType":%q,"regionCode":%q}},"serviceCode":"AmazonEC2",`+
		`"terms":{"OnDemand":{"SKU.JRTCKXETXF":{"priceDimensions":{"SKU.JRTCKXETXF.6YS6EN2CT7":{"unit":"Hrs","pricePerUnit":{"USD":%q}}},"termAttributes":{}}}}}`, name, Region, usd)
}

// spotPrices answers DescribeSpotPriceHistory with what is sold: the price of each type and zone, and one that it had before.
func (c *Cloud) spotPrices(params url.Values) *answer {
	zones := values(params, "Filter.1.Value")
	c.mu.Lock()
	defer c.mu.Unlock()
	set := &node{XMLName: xml.Name{Local: "spotPriceHistorySet"}}
	for _, name := range slices.Sorted(maps.Keys(c.ec2.prices)) {
		for _, zone := range zones {
			if usd := c.ec2.prices[name].Spot[zone]; usd != "" {
				set.Nodes = append(set.Nodes, spotPrice(name, zone, "77", time.Hour), spotPrice(name, zone, usd, time.Minute))
			}
		}
	}
	tree := &node{XMLName: xml.Name{Local: "DescribeSpotPriceHistoryResponse"}, Nodes: []*node{set}}
	return &answer{http.StatusOK, xmlType, tree.bytes()}
}

func spotPrice(name, zone, usd string, ago time.Duration) *node {
	text := func(key, value string) *node { return &node{XMLName: xml.Name{Local: key}, Text: value} }
	return &node{XMLName: xml.Name{Local: "item"}, Nodes: []*node{
		text("instanceType", name), text("productDescription", "Linux/UNIX"), text("spotPrice", usd),
		text("timestamp", time.Now().Add(-ago).UTC().Format(time.RFC3339)), text("availabilityZone", zone),
	}}
}
