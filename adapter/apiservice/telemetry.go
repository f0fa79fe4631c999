package apiservice

import "github.com/prometheus/client_golang/prometheus"

type telemetry struct {
	registered *prometheus.GaugeVec // by apiservice and service
	failures   prometheus.Counter
	expiration prometheus.Gauge
}

// newTelemetry leaves out the expiration of a certificate that another component issues.
func newTelemetry(registerer prometheus.Registerer, signs bool) *telemetry {
	t := &telemetry{
		registered: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "foresail_apiservice_registered",
			Help: "1 if an APIService leads to Foresail, 0 if to the Service of another server, or nowhere if its name is empty.",
		}, []string{"apiservice", "service"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "foresail_apiservice_failures_total",
			Help: "Failed attempts to register metrics or to renew their serving certificate.",
		}),
		expiration: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_serving_certificate_expiration_timestamp_seconds",
			Help: "When the serving certificate that Foresail has signed expires.",
		}),
	}
	registerer.MustRegister(t.registered, t.failures)
	if signs {
		registerer.MustRegister(t.expiration)
	}
	return t
}

// hold replaces who holds an API.
func (t *telemetry) hold(apiService, service string, ours bool) {
	value := 0.0
	if ours {
		value = 1
	}
	t.registered.DeletePartialMatch(prometheus.Labels{"apiservice": apiService})
	t.registered.WithLabelValues(apiService, service).Set(value)
}
