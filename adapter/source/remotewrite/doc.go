// Package remotewrite takes samples that Prometheus servers and agents push.
package remotewrite

import (
	_ "github.com/golang/snappy"
	_ "github.com/prometheus/client_golang/exp/api/remote" // until the source is here
	_ "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	_ "github.com/prometheus/exporter-toolkit/web"
	_ "github.com/prometheus/prometheus/prompb"
)
