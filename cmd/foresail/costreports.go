package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/tell"
)

const (
	costReportFlag = "nodepool-cost-report"
	costPricesFlag = "nodepool-cost-prices"
	// leastCostReport is the shortest time between two reports.
	leastCostReport = time.Hour
)

// costReportOptions are the flags of reports that are sent regularly.
type costReportOptions struct {
	every      time.Duration // 0: none are sent
	pricesFile string
	prices     cost.Prices
}

func (o *costReportOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.every, costReportFlag, 0, "How often the webhook is sent what foresail cost tells of each WorkerPool over as much time, such as 168h, which is Mondays at 0:00 UTC; 0 sends nothing.")
	fs.StringVar(&o.pricesFile, costPricesFlag, "", "File with the prices of instance types, as foresail cost workerpool --help describes it; empty reports hours alone.")
}

// validate also reads the file of prices. Reports need a webhook to be sent to and a Prometheus server to be made from.
func (o *costReportOptions) validate(enabled bool, webhookFile, prometheusURL string) error {
	if o.every == 0 {
		if o.pricesFile != "" {
			return badFlag(costPricesFlag, fmt.Sprintf("%q", o.pricesFile), "left out unless --"+costReportFlag+" is given")
		}
		return nil
	}
	var errs []error
	if o.every < leastCostReport {
		errs = append(errs, badFlag(costReportFlag, o.every, "0, or a duration of at least 1h, such as 168h"))
	}
	for _, need := range []struct {
		there bool
		what  string
	}{
		{enabled, "--enable has " + enableNodePool},
		{webhookFile != "", "--notify-webhook-url-file is given, which says where reports go"},
		{prometheusURL != "", "--prometheus-url is given, which says where the past is known"},
	} {
		if !need.there {
			errs = append(errs, badFlag(costReportFlag, o.every, "left out unless "+need.what))
		}
	}
	prices, err := readPrices(costPricesFlag, o.pricesFile)
	o.prices = prices
	return errors.Join(append(errs, err)...)
}

// build returns what makes the reports, nil if none are wanted.
func (o *costReportOptions) build(sources *sourceOptions, servers *promapi.Clients) (*tell.Reports, error) {
	if o.every == 0 {
		return nil, nil
	}
	source, err := costSource(sources, servers)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", costReportFlag, err)
	}
	return &tell.Reports{Every: o.every, Make: func(ctx context.Context, pool string, to time.Time) (string, error) {
		h, err := cost.Read(ctx, source, pool, to, o.every)
		if err != nil {
			return "", err
		}
		return cost.Of(h, o.prices).Summary(), nil
	}}, nil
}
