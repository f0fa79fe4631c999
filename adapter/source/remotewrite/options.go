package remotewrite

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/internal/promapi"
)

// Options of a Source. The zero value is usable where the address is a loopback one.
type Options struct {
	// Address is the address that Run listens on, such as ":9201".
	Address string
	// WebConfigFile is a configuration file of Prometheus exporters: TLS, client certificates, basic auth.
	WebConfigFile string
	// BearerTokenFile holds the token that senders must present. It is read again when it changes.
	BearerTokenFile string
	// AllowAnonymous admits anyone who can reach an address other than loopback.
	AllowAnonymous bool
	// Ready returns why samples cannot be assigned to pods yet; nil once they can. Until then
	// senders are asked to try again. nil = always ready.
	Ready func() error

	// Tenancy decides which namespace a series belongs to. An empty label is [promapi.DefaultNamespaceLabel].
	Tenancy promapi.Tenancy

	// MaxBodyBytes is the maximum size of a body as sent. 0 = 8 MiB.
	MaxBodyBytes int64
	// MaxDecodedBytes is the maximum size of a decompressed body. 0 = 32 MiB.
	MaxDecodedBytes int64
	// MaxInFlightBytes is the maximum size of all bodies in memory, as sent and decompressed; other
	// senders are asked to try again. 0 = 128 MiB; at least the size of one request.
	MaxInFlightBytes int64
	// MaxSeries is the maximum number of series in a request; each data point of OTLP is one. 0 = 100,000.
	MaxSeries int
	// MaxSamples is the maximum number of samples in a request. 0 = 200,000.
	MaxSamples int
	// MaxLabels is the maximum number of labels of a series that is taken. 0 = 64.
	MaxLabels int
	// MaxLabelNameBytes and MaxLabelValueBytes limit the size of its labels. 0 = 256 and 2,048.
	MaxLabelNameBytes, MaxLabelValueBytes int

	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Registerer registers the metrics of the source; nil = none.
	Registerer prometheus.Registerer
}

// DefaultMaxInFlightBytes is the default of Options.MaxInFlightBytes.
const DefaultMaxInFlightBytes = 128 << 20

func (o Options) withDefaults() Options {
	o.Tenancy.NamespaceLabel = cmp.Or(o.Tenancy.NamespaceLabel, promapi.DefaultNamespaceLabel)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 8<<20)
	o.MaxDecodedBytes = cmp.Or(o.MaxDecodedBytes, 32<<20)
	o.MaxInFlightBytes = max(cmp.Or(o.MaxInFlightBytes, DefaultMaxInFlightBytes), o.MaxBodyBytes+o.MaxDecodedBytes)
	o.MaxSeries = cmp.Or(o.MaxSeries, 100_000)
	o.MaxSamples = cmp.Or(o.MaxSamples, 200_000)
	o.MaxLabels = cmp.Or(o.MaxLabels, 64)
	o.MaxLabelNameBytes = cmp.Or(o.MaxLabelNameBytes, 256)
	o.MaxLabelValueBytes = cmp.Or(o.MaxLabelValueBytes, 2048)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate returns why Run could not serve with o, as an *OptionError.
func (o Options) Validate() error {
	s := o.senders()
	return s.validate()
}

func (o *Options) senders() senders {
	return senders{o.Address, o.WebConfigFile, o.BearerTokenFile, o.AllowAnonymous}
}

func (o *Options) limits() decode.Limits {
	return decode.Limits{
		DecodedBytes: o.MaxDecodedBytes, Series: o.MaxSeries, Samples: o.MaxSamples,
		Labels: o.MaxLabels, LabelNameBytes: o.MaxLabelNameBytes, LabelValueBytes: o.MaxLabelValueBytes,
	}
}
