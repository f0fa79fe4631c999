package remotewrite

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Source. The zero value is usable where the address is a loopback one.
type Options struct {
	// Address is what Run listens on, such as ":9201".
	Address string
	// WebConfigFile is a configuration file as Prometheus exporters take it: TLS, client certificates, basic auth.
	WebConfigFile string
	// BearerTokenFile holds the token that senders must present. It is read again when it changes.
	BearerTokenFile string
	// AllowAnonymous lets anybody write who can reach an address that is not a loopback one.
	AllowAnonymous bool
	// Ready tells why samples could not be assigned to pods yet; nil once they can. Until then senders are asked to try
	// again. nil = always ready.
	Ready func() error

	// MaxBodyBytes is the largest body as sent. 0 = 8 MiB.
	MaxBodyBytes int64
	// MaxDecodedBytes is the largest body once decompressed. 0 = 32 MiB.
	MaxDecodedBytes int64
	// MaxInFlightBytes is how many bytes of bodies, as sent and decompressed, are held at once; senders beyond that
	// are asked to try again. 0 = 128 MiB; the least is what one request may take.
	MaxInFlightBytes int64
	// MaxSeries is how many series a request may have. 0 = 100,000.
	MaxSeries int
	// MaxSamples is how many samples a request may have. 0 = 200,000.
	MaxSamples int
	// MaxLabels is how many labels a series may have that is taken. 0 = 64.
	MaxLabels int
	// MaxLabelNameBytes and MaxLabelValueBytes are how long its labels may be. 0 = 256 and 2,048.
	MaxLabelNameBytes, MaxLabelValueBytes int

	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Logger takes what the server has to say; nil = nobody.
	Logger *slog.Logger
	// Registerer takes the source's own metrics; nil = none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 8<<20)
	o.MaxDecodedBytes = cmp.Or(o.MaxDecodedBytes, 32<<20)
	o.MaxInFlightBytes = max(cmp.Or(o.MaxInFlightBytes, 128<<20), o.MaxBodyBytes+o.MaxDecodedBytes)
	o.MaxSeries = cmp.Or(o.MaxSeries, 100_000)
	o.MaxSamples = cmp.Or(o.MaxSamples, 200_000)
	o.MaxLabels = cmp.Or(o.MaxLabels, 64)
	o.MaxLabelNameBytes = cmp.Or(o.MaxLabelNameBytes, 256)
	o.MaxLabelValueBytes = cmp.Or(o.MaxLabelValueBytes, 2048)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// OptionError says what is wrong with an option.
type OptionError struct {
	Option string // its name in Options
	Value  string
	Accept string // what would be accepted instead; it may name other options
	Err    error  // why the value is not
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: %q: must be %s: %v", e.Option, e.Value, e.Accept, e.Err)
}

func (e *OptionError) Unwrap() error { return e.Err }
