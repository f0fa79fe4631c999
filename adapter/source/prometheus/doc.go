// Package prometheus reads samples from Prometheus servers.
package prometheus

import (
	_ "github.com/prometheus/client_golang/api/prometheus/v1" // until the source is here
	_ "github.com/prometheus/common/config"
)
