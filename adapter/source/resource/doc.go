// Package resource reads the usage of pods from metrics.k8s.io.
package resource

import _ "k8s.io/metrics/pkg/client/clientset/versioned" // until the source is here
