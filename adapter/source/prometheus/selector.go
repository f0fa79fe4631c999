package prometheus

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/foresail/foresail/internal/promapi"
)

var promQL = parser.NewParser(parser.Options{})

// limitTo returns a query that selects what a query does in one namespace. It must be a plain
// selector: that leaves no way around the matcher, such as a function that renames labels.
func limitTo(query, namespace string, t promapi.Tenancy) (string, error) {
	matchers, err := promQL.ParseMetricSelector(query)
	if err != nil {
		return "", err
	}
	own, err := ownMatcher(namespace, t)
	if err != nil {
		return "", err
	}
	for _, m := range matchers {
		if m.Name == t.NamespaceLabel && !m.Matches(namespace) && (!own.Matches("") || !m.Matches("")) {
			return "", fmt.Errorf("%s excludes the namespace of the PredictedMetric: %s is added to it", m, own)
		}
	}
	matchers = slices.DeleteFunc(matchers, func(m *labels.Matcher) bool {
		return own.Type == labels.MatchEqual && m.Name == t.NamespaceLabel
	})
	limited := selectorOf(append(matchers, own))
	_, err = promQL.ParseExpr(limited) // such as two names of the metric, which only an expression must not have
	if err != nil {
		return "", err
	}
	return limited, nil
}

// selectorOf writes a selector.
func selectorOf(matchers []*labels.Matcher) string {
	selector := parser.VectorSelector{LabelMatchers: matchers}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual &&
			model.LegacyValidation.IsValidMetricName(m.Value) {
			selector.Name = m.Value
		}
	}
	return selector.String()
}

// ownMatcher selects the series that belong to a namespace.
func ownMatcher(namespace string, t promapi.Tenancy) (*labels.Matcher, error) {
	if t.Namespace("") == namespace {
		return labels.NewMatcher(labels.MatchRegexp, t.NamespaceLabel, regexp.QuoteMeta(namespace)+"|")
	}
	return labels.NewMatcher(labels.MatchEqual, t.NamespaceLabel, namespace)
}
