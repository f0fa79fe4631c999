package manifests_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/docpages"
)

// alertRules is a file of rules as Prometheus reads it.
type alertRules struct {
	Groups []struct {
		Name  string      `json:"name"`
		Rules []alertRule `json:"rules"`
	} `json:"groups"`
}

type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alerts returns the alerts of each file of rules, by its name.
func alerts(t *testing.T) map[string][]alertRule {
	t.Helper()
	found := map[string][]alertRule{}
	for _, file := range files(t, "alerts") {
		var rules alertRules
		readYAML(t, filepath.Join("alerts", file), &rules)
		require.Len(t, rules.Groups, 1, file)
		assert.Equal(t, strings.TrimSuffix(file, ".yaml"), rules.Groups[0].Name)
		require.NotEmpty(t, rules.Groups[0].Rules, file)
		found[file] = rules.Groups[0].Rules
	}
	return found
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), path)
}

func TestAlertsFollowTheConventions(t *testing.T) {
	const runbooks = "https://github.com/foresail/foresail/blob/main/docs/alerts.md#"
	names := map[string]bool{}
	for _, rules := range alerts(t) {
		for _, rule := range rules {
			assert.Regexp(t, "^Foresail[A-Za-z]+$", rule.Alert)
			assert.False(t, names[rule.Alert], "%s: another rule has the name", rule.Alert)
			names[rule.Alert] = true
			assert.NotEmpty(t, rule.For, rule.Alert)
			assert.Equal(t, []string{"severity"}, slices.Collect(maps.Keys(rule.Labels)), rule.Alert)
			assert.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"], rule.Alert)
			assert.ElementsMatch(t, []string{"summary", "description", "runbook_url"},
				slices.Collect(maps.Keys(rule.Annotations)), rule.Alert)
			assert.NotContains(t, rule.Annotations["summary"], "{{", "%s: notifications of several alerts share it",
				rule.Alert)
			for _, text := range []string{"summary", "description"} {
				assert.Regexp(t, `^[A-Z{].*\.$`, rule.Annotations[text], rule.Alert)
			}
			assert.Equal(t, runbooks+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"])
		}
	}
}

func TestEveryAlertIsReviewed(t *testing.T) {
	var names []string
	for _, rules := range alerts(t) {
		for _, rule := range rules {
			names = append(names, rule.Alert)
		}
	}
	docpages.VerifyReviewed(t, "..", "Alerts", names)
}

var alertSection = regexp.MustCompile(`(?m)^### (Foresail\w+)$`)

func TestThePageExplainsEveryAlert(t *testing.T) {
	page, err := os.ReadFile("../docs/alerts.md")
	require.NoError(t, err)
	var explained, want []string
	for _, section := range alertSection.FindAllStringSubmatch(string(page), -1) {
		explained = append(explained, section[1])
	}
	for _, rules := range alerts(t) {
		for _, rule := range rules {
			want = append(want, rule.Alert)
		}
	}
	assert.ElementsMatch(t, want, explained)
}

// alertTests is a file of tests as promtool reads it.
type alertTests struct {
	RuleFiles []string `json:"rule_files"`
	Tests     []struct {
		Name        string              `json:"name"`
		InputSeries []map[string]string `json:"input_series"`
		Alerts      []struct {
			EvalTime  model.Duration   `json:"eval_time"`
			Alertname string           `json:"alertname"`
			Expected  []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// TestEveryAlertHasTests holds each alert to a test in which it fires and has ended later, to one
// moment at which it does not fire, and to one in which nothing is scraped.
func TestEveryAlertHasTests(t *testing.T) {
	assert.ElementsMatch(t, files(t, "alerts"), files(t, "alerts/tests"))
	for file, rules := range alerts(t) {
		var tests alertTests
		text, err := os.ReadFile(filepath.Join("alerts/tests", file))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &tests)) // promtool refuses unknown fields
		assert.Equal(t, []string{"../" + file}, tests.RuleFiles)
		quiet, ends, absent := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, test := range tests.Tests {
			fired := map[string]time.Duration{} // when first
			for _, moment := range test.Alerts {
				at := time.Duration(moment.EvalTime)
				absent[moment.Alertname] = absent[moment.Alertname] || len(test.InputSeries) == 0
				if len(moment.Expected) == 0 {
					quiet[moment.Alertname] = true
				} else if first, ok := fired[moment.Alertname]; !ok || at < first {
					fired[moment.Alertname] = at
				}
			}
			for _, moment := range test.Alerts {
				if first, ok := fired[moment.Alertname]; ok && len(moment.Expected) == 0 &&
					time.Duration(moment.EvalTime) > first {
					ends[moment.Alertname] = true
				}
			}
		}
		for _, rule := range rules {
			assert.True(t, quiet[rule.Alert], "%s: no test in which it does not fire", rule.Alert)
			assert.True(t, ends[rule.Alert], "%s: no test in which it fires and ends", rule.Alert)
			assert.True(t, absent[rule.Alert], "%s: no test without series", rule.Alert)
		}
	}
}

// foreignObject is what is read of an object whose type is not among this module's dependencies.
type foreignObject struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            map[string]any    `json:"spec"`
}

func TestPrometheusRulesAreThoseOfTheFiles(t *testing.T) {
	const folder = "components/prometheus-operator/"
	want := []string{"account.yaml", "podmonitor.yaml"}
	for _, file := range files(t, "alerts") {
		want = append(want, "rules-"+file)
		var rules map[string]any
		readYAML(t, filepath.Join("alerts", file), &rules)
		var o foreignObject
		readYAML(t, folder+"rules-"+file, &o)
		assert.Equal(t, "monitoring.coreos.com/v1, Kind=PrometheusRule", o.GroupVersionKind().String())
		assert.Equal(t, strings.TrimSuffix(file, ".yaml"), o.Metadata.Name)
		assert.Equal(t, rules, o.Spec, "%s: make generate writes it anew", file)
	}
	assert.ElementsMatch(t, want, files(t, folder))
}

// podMonitor is the spec of a PodMonitor, as far as it is used.
type podMonitor struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port          string          `json:"port"`
			Scheme        string          `json:"scheme"`
			TLSConfig     map[string]bool `json:"tlsConfig"`
			Authorization struct {
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
			HonorLabels bool   `json:"honorLabels"`
			Interval    string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// TestPrometheusOperatorReadsEveryPod follows the PodMonitor to the pods and the account.
func TestPrometheusOperatorReadsEveryPod(t *testing.T) {
	var monitor podMonitor
	readYAML(t, "components/prometheus-operator/podmonitor.yaml", &monitor)
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 1)
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	require.NoError(t, err)
	scheduler := 0
	for _, overlay := range []string{"base", "overlays/remote-write", "overlays/extender",
		"overlays/second-scheduler"} {
		for _, object := range render(t, overlay) {
			var pods corev1.PodTemplateSpec
			switch o := object.(type) {
			case *appsv1.Deployment:
				pods = o.Spec.Template
			case *appsv1.StatefulSet:
				pods = o.Spec.Template
			case *appsv1.DaemonSet:
				pods = o.Spec.Template
			default:
				continue
			}
			serves := slices.ContainsFunc(pods.Spec.Containers[0].Ports,
				func(p corev1.ContainerPort) bool { return p.Name == endpoint.Port })
			assert.Equal(t, serves, selector.Matches(labels.Set(pods.Labels)), "%s: %v", overlay, pods.Labels)
			if !serves {
				scheduler++
			}
		}
	}
	assert.Equal(t, 1, scheduler, "kube-scheduler is no Foresail")
	assert.Equal(t, "https", endpoint.Scheme)
	assert.True(t, endpoint.HonorLabels, "the label namespace is that of the PredictedMetric")

	account := loadFile(t, "components/prometheus-operator/account.yaml")
	secret, scraper := one[*corev1.Secret](t, account), one[*corev1.ServiceAccount](t, account)
	assert.Equal(t, endpoint.Authorization.Credentials.Name, secret.Name)
	assert.Equal(t, corev1.ServiceAccountTokenKey, endpoint.Authorization.Credentials.Key)
	assert.Equal(t, scraper.Name, secret.Annotations[corev1.ServiceAccountNameKey])
	assert.Equal(t, corev1.SecretTypeServiceAccountToken, secret.Type)
	for _, namespace := range []string{scraper.Namespace, secret.Namespace, monitor.Metadata.Namespace} {
		assert.Equal(t, one[*appsv1.Deployment](t, load(t, "base")).Namespace, namespace)
	}
	binding := one[*rbacv1.ClusterRoleBinding](t, account)
	assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: scraper.Name, Namespace: scraper.Namespace}},
		binding.Subjects)
	role := named[*rbacv1.ClusterRole](t, load(t, "base"), binding.RoleRef.Name)
	assert.Equal(t, []string{"/metrics"}, role.Rules[0].NonResourceURLs)
}

// TestSourcesShowsTheComponent compares the example of the page with the objects of the component.
func TestSourcesShowsTheComponent(t *testing.T) {
	objects := map[string]map[string]any{}
	for _, file := range []string{"account.yaml", "podmonitor.yaml"} {
		text, err := os.ReadFile(filepath.Join("components/prometheus-operator", file))
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			o := unlabelled(t, document)
			objects[o["kind"].(string)] = o
		}
	}
	for _, page := range docpages.Pages(t, "..") {
		for _, block := range page.Blocks() {
			if page.Path != "docs/sources.md" || !strings.Contains(block.Text, "kind: PodMonitor") {
				continue
			}
			for _, document := range block.Documents() {
				o := unlabelled(t, document)
				assert.Equal(t, objects[o["kind"].(string)], o, block.Where)
				delete(objects, o["kind"].(string))
			}
		}
	}
	assert.Empty(t, objects)
}

func unlabelled(t *testing.T, document string) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(document), &o))
	delete(o["metadata"].(map[string]any), "labels")
	return o
}
