package prometheus

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/promapi"
)

func TestSelectorsAreLimitedToTheNamespace(t *testing.T) {
	plain := promapi.Tenancy{NamespaceLabel: "namespace"}
	for _, c := range []struct {
		query   string
		tenancy promapi.Tenancy
		want    string
	}{
		{"load", plain, `load{namespace="shop"}`},
		{"load{}", plain, `load{namespace="shop"}`},
		{` load { job = ~"a|b" , pod != '' } # all`, plain, ""},
		{"load{job=~\"a|b\",\n pod!=''} # all of them", plain, `load{job=~"a|b",namespace="shop",pod!=""}`},
		{`load{namespace="shop"}`, plain, `load{namespace="shop"}`},
		{`load{namespace=~"shop|bank",namespace!=""}`, plain, `load{namespace="shop"}`},
		{`{__name__="load",job="x"}`, plain, `load{job="x",namespace="shop"}`},
		{`{__name__=~"a|b"}`, plain, `{__name__=~"a|b",namespace="shop"}`},
		{`{"http.load","service.name"="x"}`, plain, `{"service.name"="x",__name__="http.load",namespace="shop"}`},
		{"load", promapi.Tenancy{NamespaceLabel: "k8s_ns", Unlabelled: "bank"}, `load{k8s_ns="shop"}`},
		{`load{namespace="bank"}`, promapi.Tenancy{NamespaceLabel: "k8s_ns"}, `load{k8s_ns="shop",namespace="bank"}`},
		{"load", promapi.Tenancy{NamespaceLabel: "k8s.ns"}, `load{"k8s.ns"="shop"}`},
		{"load", promapi.Tenancy{NamespaceLabel: "namespace", Unlabelled: "shop"}, `load{namespace=~"shop|"}`},
		{`load{namespace=""}`, promapi.Tenancy{NamespaceLabel: "namespace", Unlabelled: "shop"},
			`load{namespace="",namespace=~"shop|"}`},
	} {
		got, err := limitTo(c.query, "shop", c.tenancy)
		if c.want == "" {
			require.Error(t, err, c.query)
			continue
		}
		require.NoError(t, err, c.query)
		assert.Equal(t, c.want, got, c.query)
		again, err := limitTo(got, "shop", c.tenancy)
		require.NoError(t, err)
		_, err = promQL.ParseExpr(again)
		require.NoError(t, err)
	}
}

// Whatever else PromQL offers to reach or to rename the series of others is no selector.
func TestOtherQueriesAreRejected(t *testing.T) {
	plain := promapi.Tenancy{NamespaceLabel: "namespace"}
	for query, want := range map[string]string{
		"":                                  "unexpected",
		`load{namespace="bank"}`:            `namespace="bank" excludes the namespace of the PredictedMetric: namespace="shop" is added to it`,
		`load{namespace=~"ba.*"}`:           `namespace=~"ba.*" excludes`,
		`load{namespace!="shop"}`:           `namespace!="shop" excludes`,
		`load{namespace=""}`:                `namespace="" excludes`,
		`load{namespace="shop"} or load`:    "unexpected",
		`load or load`:                      "unexpected",
		`load{job="x" or namespace="bank"}`: "unexpected",
		`sum by (pod) (load)`:               "unexpected",
		`rate(load[1m])`:                    "unexpected",
		`label_replace(load, "namespace", "shop", "", "")`: "unexpected",
		`label_join(load, "namespace", "", "pod")`:         "unexpected",
		`info(load, {namespace="bank"})`:                   "unexpected",
		`load * on (pod) group_left (secret) secrets`:      "unexpected",
		`load[5m]`:              "unexpected",
		`load[5m:1s]`:           "unexpected",
		`load offset 1h`:        "unexpected",
		`load @ 0`:              "unexpected",
		`(load)`:                "unexpected",
		"load # {\n or secrets": "unexpected",
		`load{""}`:              "metric name must not be set twice",
		`load}`:                 "unexpected",
		"`load":                 "unterminated",
		`"load"`:                "unexpected",
		`1`:                     "unexpected",
		"load{a=\"\\\"} or secrets{namespace=\\\"bank\"} or secrets": "unexpected",
	} {
		got, err := limitTo(query, "shop", plain)
		assert.ErrorContains(t, err, want, query)
		assert.Empty(t, got)
	}
}

// Whatever a tenant writes, a query that is sent selects series of the namespace alone.
func FuzzLimitTo(f *testing.F) {
	for _, query := range []string{
		"load", `load{namespace="bank"}`, "{__name__=~`a`}", `load{a="}"}`, "load{a='\\''}", `{"a.b"}`, "load # x",
		"a or b", `load{a="\n"}`, `{"a\"b"}`,
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := limitTo(query, "shop", promapi.Tenancy{NamespaceLabel: "namespace"})
		if err != nil {
			return
		}
		parsed, err := promQL.ParseExpr(got + "\n[5m]")
		if err != nil {
			t.Fatalf("%q became %q: %v", query, got, err)
		}
		selector := parsed.(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector)
		for _, m := range selector.LabelMatchers {
			if m.String() == `namespace="shop"` {
				return
			}
		}
		t.Fatalf("%q became %q", query, got)
	})
}
