{{- /* Labels that all objects of the chart have. */}}
{{- define "foresail.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: foresail
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "foresail.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if or $image.tag (not $image.digest) }}:{{ $image.tag | default (printf "v%s" (trimPrefix "v" .Chart.AppVersion)) }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* Whether the pods of the Deployment answer kube-scheduler. */}}
{{- define "foresail.extenderPods" -}}
{{- if and .Values.extender.enabled (eq .Values.extender.placement "pods") }}true{{ end }}
{{- end }}

{{- /* What no schema can say: values that need others. */}}
{{- define "foresail.validate" -}}
{{- $v := .Values }}
{{- if and $v.nodepool.simulated (not $v.nodepool.enabled) }}
{{- fail "nodepool.simulated: true needs nodepool.enabled: true" }}
{{- end }}
{{- if and $v.scheduler.enabled (not (include "foresail.extenderPods" .)) }}
{{- fail "scheduler.enabled: true needs extender.enabled: true and extender.placement: pods" }}
{{- end }}
{{- if and $v.extender.certificates (not $v.scheduler.enabled) }}
{{- fail "extender.certificates: true needs scheduler.enabled: true" }}
{{- end }}
{{- if and $v.remoteWrite.certificate (not (and $v.certificates.certManager.enabled $v.remoteWrite.enabled)) }}
{{- fail "remoteWrite.certificate: true needs certificates.certManager.enabled: true and remoteWrite.enabled: true" }}
{{- end }}
{{- if and $v.podMonitor.enabled $v.podMonitor.createAccount (ne $v.podMonitor.tokenSecretName "foresail-scraper") }}
{{- fail (printf "podMonitor.tokenSecretName: %q needs podMonitor.createAccount: false: what that creates is foresail-scraper" $v.podMonitor.tokenSecretName) }}
{{- end }}
{{- if and $v.keda.certificates (not $v.keda.enabled) }}
{{- fail "keda.certificates: true needs keda.enabled: true" }}
{{- end }}
{{- if and $v.forward.caConfigMap (not $v.forward.url) }}
{{- fail (printf "forward.caConfigMap: %q needs forward.url" $v.forward.caConfigMap) }}
{{- end }}
{{- if and $v.apiService.create (not $v.apiService.register) (not $v.certificates.certManager.enabled) }}
{{- fail "apiService.create: true with apiService.register: false needs certificates.certManager.enabled: true, as nobody else writes the authority of the certificate" }}
{{- end }}
{{- end }}

{{- /* The kustomizations that the chart is made of, in their order, and the values that switch them on. */}}
{{- define "foresail.parts" -}}
{{- $v := .Values }}
{{- $host := and $v.extender.enabled (eq $v.extender.placement "controlPlane") }}
- [base, true]
- [overlays/remote-write, {{ $v.remoteWrite.enabled }}]
- [components/prometheus-servers, {{ $v.prometheusServers.enabled }}]
- [components/nodepool, {{ $v.nodepool.enabled }}]
- [components/simulated-nodes, {{ $v.nodepool.simulated }}]
- [components/extender-rights, {{ $v.extender.enabled }}]
- [components/extender, {{ and $v.extender.enabled (not $host) }}]
- [overlays/extender, {{ $host }}]
- [overlays/second-scheduler, {{ $v.scheduler.enabled }}]
- [examples/extender-certificates, {{ $v.extender.certificates }}]
- [components/keda, {{ $v.keda.enabled }}]
- [examples/keda-certificates, {{ $v.keda.certificates }}]
- [components/mutual-tls, {{ or $v.extender.certificates $v.keda.certificates }}]
- [components/custom-metrics, {{ $v.customMetrics.enabled }}]
- [components/capacity-buffer, {{ $v.capacityBuffer.enabled }}]
- [components/dashboard, {{ $v.dashboard.enabled }}]
- [components/apiservice, {{ $v.apiService.create }}]
- [components/cert-manager, {{ $v.certificates.certManager.enabled }}]
- [examples/combined/remote-write-certificate.yaml, {{ $v.remoteWrite.certificate }}]
- [components/forward, {{ not (empty $v.forward.url) }}]
- [components/forward-ca, {{ not (empty $v.forward.caConfigMap) }}]
- [components/prometheus-operator, {{ or $v.podMonitor.enabled $v.prometheusRule.enabled }}]
- [components/grafana-dashboards, {{ $v.grafanaDashboards.enabled }}]
{{- end }}

{{- /* Objects of those kustomizations that a value takes away, by kind and name; a name of "" stands for all. */}}
{{- define "foresail.without" -}}
{{- $v := .Values }}
{{- $issuer := not (empty $v.certificates.certManager.issuerRef) }}
Namespace/{{ .Release.Namespace }}: true
Service/foresail-1: true
ServiceAccount/foresail: {{ not $v.serviceAccount.create }}
ResourceQuota/foresail-critical: {{ not $v.resourceQuota.enabled }}
PodDisruptionBudget/foresail: {{ not $v.podDisruptionBudget.enabled }}
NetworkPolicy/: {{ not $v.networkPolicy.enabled }}
Issuer/foresail-selfsigned: {{ $issuer }}
Issuer/foresail: {{ $issuer }}
Certificate/foresail-ca: {{ $issuer }}
PodMonitor/: {{ not $v.podMonitor.enabled }}
PrometheusRule/: {{ not $v.prometheusRule.enabled }}
{{- range list "ServiceAccount" "Secret" "ClusterRoleBinding" }}
{{ . }}/foresail-scraper: {{ not (and $v.podMonitor.enabled $v.podMonitor.createAccount) }}
{{- end }}
{{- end }}

{{- /* The text of a file of the kustomizations, with the names that values have. */}}
{{- define "foresail.file" -}}
{{- $root := index . 0 }}{{ $v := $root.Values }}
{{- $text := $root.Files.Get (printf "files/%s" (index . 1)) | required (printf "files/%s is missing: it is a link, which your copy of the chart has lost. Make dist packs it with the files." (index . 1)) }}
{{- range list
  (list "foresail-system" $root.Release.Namespace)
  (list "metadata.name: keda}" (printf "metadata.name: %s}" $v.keda.namespace))
  (list "secretName: foresail-keda-tls" (printf "secretName: %s" $v.keda.secretName))
  (list "secretName: foresail-prometheus-servers" (printf "secretName: %s" $v.prometheusServers.secretName))
  (list "secret: {name: foresail-remote-write}" (printf "secret: {name: %s}" $v.remoteWrite.secretName))
  (list "name: foresail-remote-write-tls" (printf "name: %s" $v.remoteWrite.tlsSecretName))
  (list "Name: foresail-remote-write-tls" (printf "Name: %s" $v.remoteWrite.tlsSecretName))
  (list "name: foresail-forward-ca" (printf "name: %s" $v.forward.caConfigMap)) }}
{{- $text = replace (index . 0) (index . 1) $text }}
{{- end }}
{{- $text }}
{{- end }}

{{- /* Applies a JSON patch to an object, in place. Of a list it adds items, and replaces the item that a test before names:
values decide which arguments there are, so that numbers of items mean nothing. */}}
{{- define "foresail.jsonPatch" -}}
{{- $object := index . 0 }}{{ $tested := "" }}
{{- range $patch := index . 1 }}
{{- $keys := splitList "/" $patch.path | rest }}
{{- $item := regexMatch "^(-|[0-9]+)$" (last $keys) }}
{{- if $item }}{{ $keys = initial $keys }}{{ end }}
{{- $at := $object }}
{{- range initial $keys }}
{{- if kindIs "map" $at }}{{ $at = get $at . }}{{ else }}{{ $at = index $at (int .) }}{{ end }}
{{- end }}
{{- $key := last $keys }}
{{- if eq $patch.op "test" }}{{ $tested = $patch.value }}
{{- else if $item }}
{{- $items := get $at $key }}
{{- if eq $patch.op "replace" }}{{ $items = without $items $tested }}{{ end }}
{{- $_ := set $at $key (append $items $patch.value) }}
{{- else if eq $patch.op "remove" }}{{ $_ := unset $at $key }}
{{- else }}{{ $_ := set $at $key $patch.value }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Adds items to a list of an object, in place: the object, the field, the items. */}}
{{- define "foresail.extend" -}}
{{- $object := index . 0 }}{{ $field := index . 1 }}
{{- with index . 2 }}{{ $_ := set $object $field (concat (get $object $field | default list) .) }}{{ end }}
{{- end }}

{{- /* Changes an object as the values say, in place. */}}
{{- define "foresail.configure" -}}
{{- $root := index . 0 }}{{ $o := index . 1 }}{{ $v := $root.Values }}
{{- $labels := fromYaml (include "foresail.labels" $root) }}{{ $annotations := dict }}
{{- $key := printf "%s/%s" $o.kind $o.metadata.name }}
{{- if eq $key "ServiceAccount/foresail" }}
{{- $_ := set $o.metadata "name" $v.serviceAccount.name }}
{{- $annotations = $v.serviceAccount.annotations }}
{{- else if eq $key "PodDisruptionBudget/foresail" }}
{{- $_ := set $o.spec "maxUnavailable" $v.podDisruptionBudget.maxUnavailable }}
{{- else if eq $key "NetworkPolicy/foresail" }}
{{- $_ := set (last $o.spec.ingress) "from" $v.networkPolicy.metricsFrom }}
{{- if not $v.networkPolicy.metricsFrom }}{{ $_ := set $o.spec "ingress" (initial $o.spec.ingress) }}{{ end }}
{{- else if and (eq $o.kind "Certificate") $v.certificates.certManager.issuerRef (has $o.metadata.name (list "foresail" "foresail-remote-write")) }}
{{- $_ := set $o.spec "issuerRef" $v.certificates.certManager.issuerRef }}
{{- else if eq $key "PodMonitor/foresail" }}
{{- $labels = mergeOverwrite $labels $v.podMonitor.labels }}
{{- $endpoint := first $o.spec.podMetricsEndpoints }}
{{- $_ := set $endpoint "interval" $v.podMonitor.interval }}
{{- $_ := set $endpoint.authorization.credentials "name" $v.podMonitor.tokenSecretName }}
{{- if and $v.certificates.certManager.enabled (not (and $v.extender.enabled (eq $v.extender.placement "controlPlane"))) }}
{{- $_ := set $endpoint "tlsConfig" (dict "ca" (dict "secret" (dict "name" "foresail-tls" "key" "ca.crt")) "serverName" (printf "foresail.%s.svc" $root.Release.Namespace)) }}
{{- end }}
{{- else if eq $o.kind "PrometheusRule" }}
{{- $labels = mergeOverwrite $labels $v.prometheusRule.labels }}
{{- else if hasPrefix "ConfigMap/foresail-dashboard" $key }}
{{- $labels = mergeOverwrite $labels $v.grafanaDashboards.labels }}
{{- $annotations = $v.grafanaDashboards.annotations }}
{{- end }}
{{- if eq $key "Certificate/foresail-remote-write" }}
{{- $names := list }}
{{- range $i := until (int $v.replicaCount) }}{{ $names = append $names (printf "foresail-%d.%s.svc" $i $root.Release.Namespace) }}{{ end }}
{{- $_ := set $o.spec "dnsNames" $names }}
{{- end }}
{{- range $o.subjects }}
{{- if eq .name "foresail" }}{{ $_ := set . "name" $v.serviceAccount.name }}{{ end }}
{{- end }}
{{- with dig "spec" "template" false $o }}
{{- include "foresail.configurePods" (list $root $o .) }}
{{- end }}
{{- $_ := set $o.metadata "labels" (mergeOverwrite (dict) ($o.metadata.labels | default dict) $labels) }}
{{- with mergeOverwrite (dict) $v.additionalAnnotations $annotations ($o.metadata.annotations | default dict) }}
{{- $_ := set $o.metadata "annotations" . }}
{{- end }}
{{- end }}

{{- /* Changes the pods of an object as the values say, in place. */}}
{{- define "foresail.configurePods" -}}
{{- $root := index . 0 }}{{ $o := index . 1 }}{{ $template := index . 2 }}{{ $v := $root.Values }}
{{- $pod := $template.spec }}{{ $container := first $pod.containers }}{{ $annotations := dict }}
{{- $fields := pick $v "imagePullSecrets" "priorityClassName" }}
{{- if eq $container.name "foresail" }}
{{- $_ := set $container "image" (include "foresail.image" $root) }}
{{- $_ := set $container "resources" $v.resources }}
{{- include "foresail.extend" (list $container "env" $v.extraEnv) }}
{{- with $v.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- end }}
{{- if eq $o.metadata.name "foresail" }}
{{- $fields = merge $fields (pick $v "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints") (dict "serviceAccountName" $v.serviceAccount.name) }}
{{- $_ := set $o.spec "replicas" $v.replicaCount }}
{{- if not $v.apiService.register }}
{{- $_ := set $container "args" (without $container.args (printf "--apiservice-inject-ca-from=%s/foresail" $root.Release.Namespace)) }}
{{- include "foresail.extend" (list $container "args" (list "--apiservice=none")) }}
{{- end }}
{{- with $v.forward.url }}{{ include "foresail.extend" (list $container "args" (list (printf "--forward-url=%s" .))) }}{{ end }}
{{- include "foresail.extend" (list $container "args" $v.extraArgs) }}
{{- include "foresail.extend" (list $container "volumeMounts" $v.extraVolumeMounts) }}
{{- include "foresail.extend" (list $pod "volumes" $v.extraVolumes) }}
{{- else if eq $o.metadata.name "foresail-scheduler" }}
{{- $_ := set $o.spec "replicas" $v.scheduler.replicaCount }}
{{- /* Of the cluster's version, without what its vendor adds. */}}
{{- $tag := $v.scheduler.image.tag | default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" $root.Capabilities.KubeVersion.Version) }}
{{- $_ := set $container "image" (printf "%s:%s" $v.scheduler.image.repository $tag) }}
{{- $_ := set $container "resources" $v.scheduler.resources }}
{{- $folder := ternary "examples/extender-certificates" "overlays/second-scheduler" $v.extender.certificates }}
{{- $annotations = dict "checksum/configuration" (include "foresail.file" (list $root (printf "%s/configuration/kubescheduler.yaml" $folder)) | sha256sum) }}
{{- end }}
{{- range $field, $value := $fields }}
{{- if $value }}{{ $_ := set $pod $field $value }}{{ else }}{{ $_ := unset $pod $field }}{{ end }}
{{- end }}
{{- $_ := set $template.metadata "labels" (mergeOverwrite (dict) $template.metadata.labels $v.podLabels) }}
{{- with mergeOverwrite $annotations $v.podAnnotations }}{{ $_ := set $template.metadata "annotations" . }}{{ end }}
{{- end }}
