package remotewrite

import "google.golang.org/protobuf/encoding/protowire"

// Fields of the messages of the protocols, for tests that write them by hand.
const (
	v1Series, v1Metadata                           protowire.Number = 1, 3
	v1Labels, v1Samples, v1Exemplars, v1Histograms protowire.Number = 1, 2, 3, 4
	v1LabelName, v1LabelValue                      protowire.Number = 1, 2

	v2Symbols, v2Series protowire.Number = 4, 5
	v2Labels            protowire.Number = 1

	otlpResourceMetrics                       protowire.Number = 1 // of the request
	otlpResource, otlpScopeMetrics            protowire.Number = 1, 2
	otlpResourceAttributes                    protowire.Number = 1
	otlpMetrics                               protowire.Number = 2
	otlpName, otlpGauge, otlpHistogram        protowire.Number = 1, 5, 9
	otlpPoints, otlpExemplars, otlpAttributes protowire.Number = 1, 5, 7
)
