package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"github.com/foresail/foresail/adapter/forecast/history"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/promapi"
)

// queryTimeout bounds a query to a Prometheus server. Servers that take longer end queries themselves, after two
// minutes by default: by then the load has changed, and others wait for the connection.
const queryTimeout = 10 * time.Second

// What an answer may have, of the memory that all answers take at once. A series with its labels and samples takes
// a few kilobytes, and more while it is decoded.
const (
	answersInMemory = 8
	bytesPerSeries  = 25 << 10
)

// prometheusFlag names the server, as in the commands that read the past.
const prometheusFlag = "prometheus"

// leastHistory is the shortest history that is of use: what recurs each hour.
const leastHistory = 2 * time.Hour

// prometheusOptions are the flags of everything that queries Prometheus servers: sources, WorkerPools and the extender.
type prometheusOptions struct {
	file    string
	url     string         // of the server for WorkerPools that name none; "" for none
	any     bool           // whether servers that are neither in the file nor at the URL may be queried
	history model.Duration // how far back the loads of PredictedMetrics are read; 0 for not at all
	limits  promapi.Options
}

func (o *prometheusOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.file, "prometheus-config-file", "", "File that lists the Prometheus servers that "+
		"PredictedMetrics and WorkerPools may query, with their credentials and certificates. Without it they may "+
		"query that of --prometheus alone.")
	fs.BoolVar(&o.any, "prometheus-allow-unlisted", false,
		"Let PredictedMetrics and WorkerPools query any other server too, without credentials, but never at a loopback, link-local or cloud metadata address. Users who may write a PredictedMetric can then have Foresail connect to what it can reach.")
	fs.StringVar(&o.url, prometheusFlag, "", "Prometheus server that PredictedMetrics may query, that WorkerPools "+
		"query that name none, and that the extender reads the use of nodes from, such as "+
		"http://prometheus.monitoring:9090.")
	o.history = model.Duration(history.Span)
	fs.Var(&o.history, "prometheus-history",
		"How far back to read the load of a PredictedMetric that is known for less than a day, such as 8d or 36h, from the Prometheus server of its source: what it does each day and "+
			"week is known at once. It is read slowly, behind all other queries, and once: then it is in the checkpoint. 0 turns this off.")
	fs.Int64Var(&o.limits.MaxMemory, "prometheus-max-memory", promapi.DefaultMaxMemory, "Maximum memory that the "+
		"answers to all queries of PredictedMetrics take at once, in bytes. One answer has at most an eighth of "+
		"it, and a series for each 25 KiB. Namespaces get equal shares when it is scarce.")
}

// validate reads the file of servers, and keeps nothing of it.
func (o *prometheusOptions) validate() error {
	var errs []error
	if h := time.Duration(o.history); h != 0 && (h < leastHistory || h > history.Span) {
		errs = append(errs, cli.BadFlag("prometheus-history", o.history,
			fmt.Sprintf("0, or from %s to %s: nothing before is of use", model.Duration(leastHistory),
				model.Duration(history.Span))))
	}
	if o.limits.MaxMemory < 1<<20 {
		errs = append(errs, cli.BadFlag("prometheus-max-memory", o.limits.MaxMemory, "at least 1048576"))
	}
	return errors.Join(append(errs, o.validateServers())...)
}

// complete loads the file of servers.
func (o *prometheusOptions) complete() error {
	servers, err := o.loadServers()
	o.limits.Servers = servers
	return err
}

// loadServers reads the file of servers. Without one, the server at the URL is the only one that is listed.
func (o *prometheusOptions) loadServers() (*promapi.Servers, error) {
	servers, err := cli.LoadServers(o.file)
	if err != nil {
		return nil, err
	}
	servers.AllowUnlisted = o.any
	if address, err := promapi.ParseAddress(o.url); err == nil && (o.file == "" || o.any) {
		servers.List(address)
	}
	return servers, nil
}

// validateServers checks the file of servers, and the URL against it.
func (o *prometheusOptions) validateServers() error {
	servers, err := o.loadServers()
	return errors.Join(err, o.validateURL(servers))
}

func (o *prometheusOptions) validateURL(servers *promapi.Servers) error {
	if o.url == "" {
		return nil
	}
	address, err := promapi.ParseAddress(o.url)
	if err != nil {
		return cli.BadFlag(prometheusFlag, fmt.Sprintf("%q", promapi.Redact(o.url)), promapi.AcceptedAddress)
	}
	if err := servers.Permit(address); err != nil {
		return cli.BadFlag(prometheusFlag, fmt.Sprintf("%q", address), fmt.Sprintf("one that "+
			"--prometheus-config-file permits: %v", err))
	}
	return nil
}

// api are the limits for clients of the servers.
func (o *prometheusOptions) api() promapi.Options {
	limits := o.limits
	limits.MaxBytes, limits.MaxSeries = limits.MaxMemory/answersInMemory, int(limits.MaxMemory/bytesPerSeries)
	limits.UserAgent = cli.UserAgent()
	return limits
}

// clients returns clients that have connected to no server yet.
func (o *prometheusOptions) clients() *promapi.Clients { return promapi.NewClients(o.api()) }
