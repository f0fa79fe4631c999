package prometheus

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/promapi"
)

// honest answers as Prometheus does: with the series that match all matchers of the query.
func honest(t *testing.T, all func() []fakeSeries) *fakeServer {
	return newServer(func(_ int, q asked) (int, io.Reader, error) {
		parsed, err := promQL.ParseExpr(q.query)
		require.NoError(t, err)
		var out []fakeSeries
		for _, s := range all() {
			matches := true
			for _, m := range parsed.(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector).LabelMatchers {
				matches = matches && m.Matches(s.labels[m.Name])
			}
			if matches {
				out = append(out, s)
			}
		}
		return http.StatusOK, strings.NewReader(matrix(out...)), nil
	})
}

// spaces is two namespaces with a pod of the same name each, and a series that has no namespace.
func spaces() []fakeSeries {
	secret := pod("a", 7, 8).label("secret", "customer-4711")
	return []fakeSeries{
		pod("a", 1, 2), secret.label("namespace", "bank"), secret.label("namespace", "bank").label("job", "x"),
		secret.label("namespace", ""),
	}
}

// Whatever a tenant asks for, neither values nor labels of another's series reach it, and theirs do
// not disturb its own.
func TestSeriesOfOthersAreNotRead(t *testing.T) {
	servers := map[string]func(t *testing.T) *fakeServer{
		"a server that applies matchers": func(t *testing.T) *fakeServer { return honest(t, spaces) },
		"one that does not": func(*testing.T) *fakeServer {
			return saying(http.StatusOK,
				matrix(spaces()...))
		},
	}
	for name, server := range servers {
		for _, query := range []string{
			"load", `load{pod="a"}`, `{__name__=~".+"}`, `load{namespace=~".*"}`, `load{secret!=""}`,
			`load{namespace="shop"}`,
			`load{secret="customer-4711"}`,
		} {
			t.Run(name+" "+query, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := running(t, Options{}, server(t))
					sink := newRecorder()
					c := gauge()
					c.Query = query
					require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
					sourcetest.Pass(time.Second)
					s.Remove(key("pm"))
					for _, v := range sink.values("a") {
						assert.Less(t, v, 7.0)
					}
					messages := strings.Join(append(sink.SourceErrors(), sink.Failures("uid-a")...), "\n")
					if !strings.Contains(query, "4711") {
						assert.NotContains(t, messages, "customer")
					}
					assert.NotContains(t, messages, "bank")
				})
			})
		}
	}
}

// Two namespaces that ask for the same get an answer each, of their own series.
func TestNamespacesShareNoQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := honest(t, spaces)
		s := running(t, Options{}, server)
		shop, again, bank := newRecorder(), newRecorder(), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), shop))
		require.NoError(t, s.Set(key("second"), gauge(), fleetOf("a"), again))
		other := gauge()
		other.Query = `load{job="x"}`
		require.NoError(t, s.Set(types.NamespacedName{Namespace: "bank", Name: "pm"}, other, fleetOf("a"), bank))
		assert.Len(t, s.groups, 2)
		sourcetest.Pass(time.Second)
		assert.Equal(t, []float64{1, 2}, shop.values("a")[:2])
		assert.Equal(t, shop.values("a"), again.values("a"))
		assert.Equal(t, []float64{7, 8}, bank.values("a")[:2])
		for _, q := range server.queries() {
			selector, _, _ := strings.Cut(q.query, "\n")
			assert.Contains(t, []string{`load{namespace="shop"}`, `load{job="x",namespace="bank"}`}, selector)
		}
		for _, name := range []types.NamespacedName{key("pm"), key("second"), {Namespace: "bank", Name: "pm"}} {
			s.Remove(name)
		}
	})
}

// The operator may name another label, and the namespace whose series have none.
func TestTheOperatorSaysWhoseSeriesAreWhose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, err := promapi.LoadServers(write(t, filepath.Join(t.TempDir(), "servers.yaml"),
			"servers: [{address: '"+address+"', namespaceLabel: tenant, unlabelledNamespace: shop}]"))
		require.NoError(t, err)
		server := honest(t, func() []fakeSeries {
			return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4).label("tenant", "shop"),
				pod("a", 7, 8).label("tenant", "bank")}
		})
		s := running(t, Options{Servers: servers}, server)
		shop, bank := newRecorder(), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a", "b"), shop))
		require.NoError(t, s.Set(types.NamespacedName{Namespace: "bank", Name: "pm"}, gauge(), fleetOf("a", "b"), bank))
		sourcetest.Pass(time.Second)
		assert.Equal(t, []float64{1, 2}, shop.values("a")[:2])
		assert.Equal(t, []float64{3, 4}, shop.values("b")[:2])
		assert.Equal(t, []float64{7, 8}, bank.values("a")[:2])
		assert.Empty(t, bank.of("b"))
	})
}
