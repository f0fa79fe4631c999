package helm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// everything switches on all parts of the chart that go together.
const everything = `
apiService: {create: true}
certificates: {certManager: {enabled: true}}
prometheusServers: {enabled: true}
remoteWrite: {enabled: true, certificate: true}
customMetrics: {enabled: true}
capacityBuffer: {enabled: true}
keda: {enabled: true, certificates: true}
forward: {url: "https://prometheus-adapter.monitoring.svc:443", caConfigMap: foresail-forward-ca}
nodepool: {enabled: true, simulated: true}
extender: {enabled: true, certificates: true}
scheduler: {enabled: true}
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
grafanaDashboards: {enabled: true}
dashboard: {enabled: true}
`

func TestNamespaceIsThatOfTheRelease(t *testing.T) {
	here := render(t, current, everything)
	elsewhere := output(t, current, "template", "foresail", folder, "--namespace", "autoscaling", "--kube-version",
		"v1.37.2+k3s1", "--values", file(t, everything))
	assert.Equal(t, strings.ReplaceAll(withoutChecksums(here), namespace, "autoscaling"), withoutChecksums(elsewhere))
}

var checksum = regexp.MustCompile(`checksum/configuration: \w+`)

func withoutChecksums(rendered []byte) string { return checksum.ReplaceAllString(string(rendered), "") }

// TestRenderingsAreAlike has GitOps tools find no difference where there is none.
func TestRenderingsAreAlike(t *testing.T) {
	assert.Equal(t, string(render(t, current, everything)), string(render(t, current, everything)))
	forbidden := regexp.MustCompile(`\b(lookup|genCA\w*|genSelfSignedCert\w*|genSignedCert\w*|genPrivateKey|rand[A-Z]\w*|uuidv4|now|htpasswd|bcrypt)\b|helm\.sh/hook`)
	action := regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	require.NoError(t, filepath.WalkDir(filepath.Join(folder, "templates"),
		func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, code := range action.FindAllString(string(text), -1) {
				assert.NotRegexp(t, forbidden, code, path)
			}
			assert.NotContains(t, string(text), "helm.sh/hook", path)
			assert.NotContains(t, string(text), "caBundle:", "Foresail or cert-manager writes it")
			return err
		}))
}

func TestUnusableValuesAreRefused(t *testing.T) {
	for values, message := range map[string]string{
		"replicas: 3":                                        "replicas",
		"image: {tagg: v1}":                                  "tagg",
		"replicaCount: many":                                 "replicaCount",
		"replicaCount: -1":                                   "replicaCount",
		"image: {digest: sha256:1}":                          "digest",
		"extender: {placement: hosts}":                       "placement",
		"extraArgs: [run]":                                   "extraArgs",
		"nodepool: {simulated: true}":                        "needs nodepool.enabled",
		"scheduler: {enabled: true}":                         "needs extender.enabled",
		"extender: {certificates: true}":                     "needs scheduler.enabled",
		"remoteWrite: {certificate: true}":                   "needs certificates.certManager.enabled",
		"keda: {certificates: true}":                         "needs keda.enabled",
		"podMonitor: {enabled: true, tokenSecretName: ours}": "needs podMonitor.createAccount: false",
		"forward: {caConfigMap: a}":                          "needs forward.url",
		"forward: {url: prometheus-adapter}":                 "forward",
		"apiService: {create: true, register: false}":        "needs certificates.certManager.enabled",
	} {
		_, complaints, err := run(t.Context(), current, "template", "foresail", folder, "--values", file(t, values))
		require.Error(t, err, values)
		assert.Contains(t, string(complaints), message, values)
	}
}

// open are the values whose keys are not the chart's to know.
var open = []string{
	"global", "resources.requests", "resources.limits", "nodeSelector", "affinity", "serviceAccount.annotations",
	"podMonitor.labels", "prometheusRule.labels",
	"grafanaDashboards.labels", "grafanaDashboards.annotations",
	"certificates.certManager.issuerRef", "scheduler.resources.requests", "podLabels", "podAnnotations",
	"additionalLabels", "additionalAnnotations",
}

// TestSchemaKnowsEveryValue also holds it to describe each, and to refuse what it does not know.
func TestSchemaKnowsEveryValue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "values.schema.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	var found []string
	var check func(path string, schema map[string]any)
	check = func(path string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		if schema["type"] == "object" && schema["additionalProperties"] != false {
			found = append(found, path)
		}
		if len(properties) == 0 {
			assert.NotEmpty(t, schema["description"], path)
		}
		for name, property := range properties {
			check(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any))
		}
	}
	check("", schema)
	assert.ElementsMatch(t, open, found)
}

// TestValuesReachTheirPlaces has those that no kustomization has.
func TestValuesReachTheirPlaces(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rendered := objects(t, render(t, current, `
image: {registry: "", repository: registry.example.com/mirror/foresail, digest: "`+digest+`", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
replicaCount: 3
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: []
priorityClassName: ""
resourceQuota: {enabled: false}
podDisruptionBudget: {maxUnavailable: 50%}
networkPolicy: {metricsFrom: []}
serviceAccount: {create: false, name: other}
certificates: {certManager: {enabled: true, issuerRef: {name: ours, kind: ClusterIssuer}}}
apiService: {register: false}
podMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
grafanaDashboards: {enabled: true, labels: {grafana_dashboard: null, find: me}, annotations: {grafana_folder: Scaling}}
extraArgs: [--namespaces=shop]
extraEnv: [{name: AWS_REGION, value: eu-central-1}]
extraVolumes: [{name: prices, configMap: {name: prices}}]
extraVolumeMounts: [{name: prices, mountPath: /prices}]
podLabels: {team: platform}
podAnnotations: {a: b}
additionalLabels: {owner: platform}
additionalAnnotations: {c: d}
crds: {keep: false}
extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-prices"}, data: {kubescheduler.yaml: "a: b"}}]
`))
	deployment := rendered["Deployment/"+namespace+"/foresail"]
	at := func(fields ...string) any {
		value, _, err := unstructured.NestedFieldNoCopy(deployment, fields...)
		require.NoError(t, err)
		return value
	}
	pod := at("spec", "template", "spec").(map[string]any)
	container := asList(pod["containers"])[0].(map[string]any)
	assert.Equal(t, "registry.example.com/mirror/foresail@"+digest, container["image"])
	assert.Equal(t, "Always", container["imagePullPolicy"])
	assert.Equal(t, []any{map[string]any{"name": "registry"}}, pod["imagePullSecrets"])
	assert.EqualValues(t, 3, at("spec", "replicas"))
	assert.Equal(t, map[string]any{"kubernetes.io/os": "linux"}, pod["nodeSelector"])
	assert.Len(t, pod["tolerations"], 1)
	assert.Equal(t, map[string]any{"nodeAffinity": map[string]any{}}, pod["affinity"])
	for _, absent := range []string{"topologySpreadConstraints", "priorityClassName"} {
		assert.NotContains(t, pod, absent)
	}
	assert.Equal(t, "other", pod["serviceAccountName"])
	assert.Equal(t, "platform", at("spec", "template", "metadata", "labels", "team"))
	assert.Equal(t, "b", at("spec", "template", "metadata", "annotations", "a"))
	assert.Equal(t, "platform", at("metadata", "labels", "owner"))
	assert.Equal(t, "d", at("metadata", "annotations", "c"))
	assert.Len(t, container["env"], 2)
	assert.Contains(t, container["volumeMounts"], map[string]any{"name": "prices", "mountPath": "/prices"})
	arguments := container["args"].(map[string]any)
	assert.Equal(t, "shop", arguments["--namespaces"])
	assert.Equal(t, "none", arguments["--apiservice"])
	assert.NotContains(t, arguments, "--apiservice-inject-ca-from", "the command refuses it then")

	binding := rendered["ClusterRoleBinding//foresail"]
	assert.Equal(t, "other", asList(binding["subjects"])[0].(map[string]any)["name"])
	certificate := rendered["Certificate/"+namespace+"/foresail"]
	assert.Equal(t, map[string]any{"name": "ours", "kind": "ClusterIssuer"},
		certificate["spec"].(map[string]any)["issuerRef"])
	assert.Equal(t, "50%", rendered["PodDisruptionBudget/"+namespace+"/foresail"]["spec"].(map[string]any)["maxUnavailable"])
	assert.Len(t, rendered["NetworkPolicy/"+namespace+"/foresail"]["spec"].(map[string]any)["ingress"], 1)
	assert.Contains(t, rendered, "ConfigMap//foresail-prices")
	meta := func(key, kind, name string) any {
		object := unstructured.Unstructured{Object: rendered[key]}
		require.NotNil(t, object.Object, key)
		value, _, err := unstructured.NestedString(object.Object, "metadata", kind, name)
		require.NoError(t, err)
		return value
	}
	for _, monitored := range []string{"PodMonitor/" + namespace + "/foresail",
		"PrometheusRule/" + namespace + "/foresail-nodepool"} {
		assert.Equal(t, "prometheus", meta(monitored, "labels", "release"))
		assert.Equal(t, "d", meta(monitored, "annotations", "c"))
	}
	assert.Equal(t, "foresail-scraper", meta("Secret/"+namespace+"/foresail-scraper", "annotations",
		"kubernetes.io/service-account.name"))
	assert.Equal(t, "d", meta("Secret/"+namespace+"/foresail-scraper", "annotations", "c"))
	const grafana = "ConfigMap/" + namespace + "/foresail-dashboard-nodepool"
	assert.Equal(t, "me", meta(grafana, "labels", "find"))
	assert.Empty(t, meta(grafana, "labels", "grafana_dashboard"))
	assert.Equal(t, "Scaling", meta(grafana, "annotations", "grafana_folder"))
	assert.Equal(t, "d", meta(grafana, "annotations", "c"))
	for _, absent := range []string{"ServiceAccount/" + namespace + "/other",
		"ResourceQuota/" + namespace + "/foresail-critical", "Issuer/" + namespace + "/foresail"} {
		assert.NotContains(t, rendered, absent)
	}
}

func TestCRDsAreKeptUnlessToldOtherwise(t *testing.T) {
	const policy = "helm.sh/resource-policy: keep"
	kept := string(render(t, current, ""))
	crds := strings.Count(kept, "kind: CustomResourceDefinition\n")
	assert.NotZero(t, crds)
	assert.Equal(t, crds, strings.Count(kept, policy))
	assert.NotContains(t, string(render(t, current, "crds: {keep: false}")), policy)
	assert.NotContains(t, string(render(t, current, "crds: {install: false}")), "kind: CustomResourceDefinition\n")
}

func TestLintFindsNothing(t *testing.T) {
	said := string(output(t, current, "lint", "--strict", folder))
	assert.Contains(t, said, "0 chart(s) failed")
	assert.NotRegexp(t, `\[(INFO|WARNING|ERROR)\]`, said)
}
