{{- /* Labels of all objects, beside those that selectors read. */}}
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

{{- /* Annotations within metadata, with the line that they begin on. */}}
{{- define "foresail.annotations" }}
{{- with .Values.additionalAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "foresail.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if or $image.tag (not $image.digest) }}:{{ $image.tag | default (printf "v%s" (trimPrefix "v" .Chart.AppVersion)) }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "foresail.issuerRef" -}}
{{ .Values.certificates.certManager.issuerRef | default (dict "name" "foresail" "kind" "Issuer") | toJson }}
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

{{- /* The arguments of the pods that run Foresail. */}}
{{- define "foresail.args" -}}
{{- $v := .Values }}
- run
{{- if $v.remoteWrite.enabled }}
- --remote-write-address=:9201
- --remote-write-web-config-file=/remote-write/web.yml
{{- end }}
{{- if $v.prometheusServers.enabled }}
- --prometheus-config-file=/prometheus-servers/servers.yaml
{{- end }}
{{- if $v.nodepool.enabled }}
- --enable=adapter,nodepool
{{- end }}
{{- if include "foresail.extenderPods" . }}
- --enable=adapter,extender
- --extender-address=:9443
{{- if $v.extender.certificates }}
- --extender-cert-dir=/extender-tls
{{- else }}
- --allow-anonymous=extender
{{- end }}
{{- end }}
{{- if $v.keda.enabled }}
- --keda-address=:9600
- --keda-cert-dir=/keda-tls
{{- end }}
{{- if $v.customMetrics.enabled }}
- --custom-metrics=true
{{- end }}
{{- if $v.dashboard.enabled }}
- --dashboard=true
{{- end }}
{{- if $v.certificates.certManager.enabled }}
- --cert-dir=/tls
- --metrics-cert-dir=/tls
{{- if $v.apiService.register }}
- --apiservice-inject-ca-from={{ .Release.Namespace }}/foresail
{{- end }}
{{- end }}
{{- if not $v.apiService.register }}
- --apiservice=none
{{- end }}
{{- with $v.forward.url }}
- --forward-url={{ . }}
{{- end }}
{{- if $v.forward.caConfigMap }}
- --forward-ca-file=/forward/ca.crt
{{- end }}
{{- with $v.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "foresail.volumes" -}}
{{- $v := .Values }}
{{- if $v.remoteWrite.enabled }}
- name: remote-write
  projected:
    sources:
    - secret: {name: {{ $v.remoteWrite.secretName }}}
    - secret: {name: {{ $v.remoteWrite.tlsSecretName }}, optional: true}
{{- end }}
{{- if $v.prometheusServers.enabled }}
- name: prometheus-servers
  secret: {secretName: {{ $v.prometheusServers.secretName }}}
{{- end }}
{{- if $v.extender.certificates }}
- name: extender-tls
  secret: {secretName: foresail-extender-tls}
{{- end }}
{{- if $v.keda.enabled }}
- name: keda-tls
  secret: {secretName: {{ $v.keda.secretName }}}
{{- end }}
{{- if $v.certificates.certManager.enabled }}
- name: tls
  secret: {secretName: foresail-tls}
{{- end }}
{{- with $v.forward.caConfigMap }}
- name: forward
  configMap: {name: {{ . }}}
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "foresail.volumeMounts" -}}
{{- $v := .Values }}
{{- if $v.remoteWrite.enabled }}
- {name: remote-write, mountPath: /remote-write, readOnly: true}
{{- end }}
{{- if $v.prometheusServers.enabled }}
- {name: prometheus-servers, mountPath: /prometheus-servers, readOnly: true}
{{- end }}
{{- if $v.extender.certificates }}
- {name: extender-tls, mountPath: /extender-tls, readOnly: true}
{{- end }}
{{- if $v.keda.enabled }}
- {name: keda-tls, mountPath: /keda-tls, readOnly: true}
{{- end }}
{{- if $v.certificates.certManager.enabled }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- if $v.forward.caConfigMap }}
- {name: forward, mountPath: /forward, readOnly: true}
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What all pods of Foresail have: probes, resources and limits of what they may do. */}}
{{- define "foresail.container" -}}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
env:
# Garbage is collected more often before the kernel ends the process for its memory.
- name: FORESAIL_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef: {resource: limits.memory} # in bytes
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "foresail.podSecurity" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}
