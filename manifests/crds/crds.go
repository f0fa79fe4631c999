// Package crds has the CustomResourceDefinitions in this folder, which make generate writes from
// the types of the API.
package crds

import _ "embed" // the files are embedded as text

// PredictedMetrics is the definition of PredictedMetrics in YAML.
//
//go:embed foresail.dev_predictedmetrics.yaml
var PredictedMetrics []byte
