{{/* What is too long for the suffixes to fit, or has dots, which names of Services may not have, ends in a hash: so that two names stay two. */}}
{{- define "auth.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := printf "%s-%s" .Release.Name $name }}
{{- if .Values.fullnameOverride }}
{{- $full = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- $full = .Release.Name }}
{{- end }}
{{- if or (gt (len $full) 45) (contains "." $full) }}
{{- printf "%s-%s" ($full | replace "." "-" | trunc 36 | trimSuffix "-") ($full | sha256sum | trunc 8) }}
{{- else }}
{{- $full }}
{{- end }}
{{- end }}

{{- define "auth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "auth.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "auth.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* That of the Job runs before the release's own is there. */}}
{{- define "auth.migrationServiceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- printf "%s-migrate" (include "auth.fullname" .) }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "auth.image" -}}
{{- $name := .Values.image.repository }}
{{- if .Values.image.registry }}
{{- $name = printf "%s/%s" .Values.image.registry $name }}
{{- end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Takes {root, component}. */}}
{{- define "auth.selectorLabels" -}}
app.kubernetes.io/name: {{ include "auth.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end }}

{{/* Takes {root, component}. The chart's labels win over common ones: selectors rely on them. */}}
{{- define "auth.labels" -}}
{{- $own := include "auth.selectorLabels" . | fromYaml }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- $_ := set $own "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_" | trunc 63) }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- toYaml (merge $own .root.Values.commonLabels) }}
{{- end }}

{{/* Takes {root, annotations}; writes nothing where there are none. */}}
{{- define "auth.annotations" -}}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
{{- printf "annotations:\n%s" (toYaml . | indent 2) | nindent 2 }}
{{- end }}
{{- end }}

{{/* A value as the text of an environment variable. Numbers by way of JSON, or large ones would come out as 1.5e+08. */}}
{{- define "auth.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{/* The data of the ConfigMap. JSON's strings are YAML's, whatever is in them. */}}
{{- define "auth.configData" -}}
{{- range $name, $value := .Values.config }}
{{- $text := include "auth.text" $value }}
{{- if and (not (kindIs "invalid" $value)) (ne $text "") }}
{{ $name }}: {{ toJson $text }}
{{- end }}
{{- end }}
{{- end }}

{{- define "auth.secretData" -}}
{{- range $name, $value := .Values.secrets }}
{{- $text := include "auth.text" $value }}
{{- if and (not (kindIs "invalid" $value)) (ne $text "") }}
{{ $name }}: {{ b64enc $text | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Takes {root, name, isSecret}: writes `yes` where the pods are given the variable, or may be from where the chart cannot see. A plain
setting is not expected in the operator's Secret: one that was forgotten should be noticed here, not by pods that do not start.
*/}}
{{- define "auth.isGiven" -}}
{{- $values := .root.Values }}
{{- $unseen := or $values.extraEnvFrom (and .isSecret $values.existingSecret) }}
{{- $own := or (get $values.config .name) (and (not $values.existingSecret) (get $values.secrets .name)) }}
{{- $named := false }}
{{- range $values.extraEnv }}
{{- if eq .name $.name }}{{ $named = true }}{{ end }}
{{- end }}
{{- if or $unseen $own $named }}yes{{ end }}
{{- end }}

{{/* Takes {resources, name}: writes `yes` where something is requested. Kubernetes takes a limit for a request that is not there. */}}
{{- define "auth.requests" -}}
{{- range list "requests" "limits" }}
{{- if get (get ($.resources | default dict) . | default dict) $.name }}yes{{ end }}
{{- end }}
{{- end }}

{{/* Stops the rendering where the service could not start, with a sentence that says which value is missing. */}}
{{- define "auth.check" -}}
{{- if regexMatch "^[^a-z]" (include "auth.fullname" .) }}
{{- fail "fullnameOverride is required where a release's name begins with a digit: names of Services begin with a letter." }}
{{- end }}
{{- range $name, $meaning := dict "AUTH_SITE_URL" "the URL of your application" "AUTH_API_EXTERNAL_URL" "the URL under which this service is reachable" }}
{{- if not (include "auth.isGiven" (dict "root" $ "name" $name)) }}
{{- fail (printf "config.%s is required: %s." $name $meaning) }}
{{- end }}
{{- end }}
{{- range $name, $meaning := dict "AUTH_DATABASE_URL" "a PostgreSQL connection string" "AUTH_JWT_SECRET" "a secret of 32 bytes or more" }}
{{- if not (include "auth.isGiven" (dict "root" $ "name" $name "isSecret" true)) }}
{{- fail (printf "existingSecret is required, the name of a Secret with the key %s (or secrets.%s itself): %s." $name $name $meaning) }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^(?i)(false|0|no|off|f)$" (include "auth.text" (get .Values.config "AUTH_EXTERNAL_EMAIL_ENABLED"))) }}
{{- range $name := list "AUTH_SMTP_HOST" "AUTH_SMTP_PORT" "AUTH_SMTP_ADMIN_EMAIL" }}
{{- if not (include "auth.isGiven" (dict "root" $ "name" $name)) }}
{{- fail (printf "config.%s is required while e-mail is enabled; set config.AUTH_EXTERNAL_EMAIL_ENABLED to false to go without mail." $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas." }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (not (or .targetCPUUtilizationPercentage .targetMemoryUtilizationPercentage)) }}
{{- fail "autoscaling.targetCPUUtilizationPercentage and autoscaling.targetMemoryUtilizationPercentage are both 0: there is nothing to scale by." }}
{{- end }}
{{- end }}
{{- if .Values.autoscaling.enabled }}
{{- range $resource, $target := dict "cpu" "targetCPUUtilizationPercentage" "memory" "targetMemoryUtilizationPercentage" }}
{{- if and (get $.Values.autoscaling $target) (not (include "auth.requests" (dict "resources" $.Values.resources "name" $resource))) }}
{{- fail (printf "autoscaling.%s needs resources.requests.%s: it is a share of that." $target $resource) }}
{{- end }}
{{- end }}
{{- end }}
{{- if gt (int .Values.preStopSeconds) (int .Values.terminationGracePeriodSeconds) }}
{{- fail "preStopSeconds is above terminationGracePeriodSeconds: a pod would be killed before it begins to stop." }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled: there would be nothing to scrape." }}
{{- end }}
{{- if and .Values.console.enabled (not (include "auth.isGiven" (dict "root" . "name" "AUTH_HOSTED_PAGES_ENABLED"))) }}
{{- fail "console.enabled needs config.AUTH_HOSTED_PAGES_ENABLED: its sign-in is a hosted page." }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.hosts is required with ingress.enabled: a list of {host, paths}." }}
{{- end }}
{{- end }}

{{/* Takes {root, component, configName, secretName}: what a container knows. */}}
{{- define "auth.environment" -}}
envFrom:
  - configMapRef:
      name: {{ .configName | quote }}
  {{- if or .root.Values.existingSecret (include "auth.secretData" .root) }}
  - secretRef:
      name: {{ .secretName | quote }}
  {{- end }}
  {{- with .root.Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  - name: AUTH_PORT
    value: {{ .root.Values.containerPorts.http | toJson | quote }}
  - name: AUTH_WORKERS_ENABLED
    value: {{ not .root.Values.worker.enabled | toJson | quote }}
  # Migrations are the Job's work where there is one.
  - name: AUTH_MIGRATE_ON_START
    value: {{ not .root.Values.migration.enabled | toJson | quote }}
  {{- if .root.Values.metrics.enabled }}
  - name: AUTH_METRICS_ENABLED
    value: "true"
  - name: AUTH_METRICS_EXPORTER
    value: prometheus
  - name: AUTH_OTEL_EXPORTER_PROMETHEUS_PORT
    value: {{ .root.Values.containerPorts.metrics | toJson | quote }}
  {{- end }}
  {{- if .root.Values.console.enabled }}
  - name: AUTH_CONSOLE_ENABLED
    value: "true"
  - name: AUTH_CONSOLE_PORT
    value: {{ .root.Values.console.port | toJson | quote }}
  {{- end }}
  {{- with .root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "auth.secretName" -}}
{{- default (include "auth.fullname" .) .Values.existingSecret }}
{{- end }}

{{/* The ServiceAccount's token is nobody's business, and a Service called auth must not become a variable AUTH_PORT. */}}
{{- define "auth.podBasics" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "string" . }}{{ toJson . }}{{ else }}{{ toJson .name }}{{ end }}
  {{- end }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Takes {root, component}. */}}
{{- define "auth.placement" -}}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range .root.Values.topologySpreadConstraints }}
  - {{ toYaml . | nindent 4 | trim }}
    {{- if not (hasKey . "labelSelector") }}
    labelSelector:
      matchLabels:
        {{- include "auth.selectorLabels" $ | nindent 8 }}
    {{- if not (hasKey . "matchLabelKeys") }}
    matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "auth.container" -}}
image: {{ include "auth.image" . | toJson }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "auth.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "auth.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.tmpSizeLimit }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Takes {root, component, annotations, labels}: metadata of pods, with checksums, so that changed settings roll them. */}}
{{- define "auth.podMetadata" -}}
labels:
  {{- $own := include "auth.selectorLabels" . | fromYaml }}
  {{- toYaml (merge $own (.labels | default dict) .root.Values.podLabels .root.Values.commonLabels) | nindent 2 }}
annotations:
  {{- $sums := dict "checksum/config" (include "auth.configData" .root | sha256sum) }}
  {{- if not .root.Values.existingSecret }}
  {{- $_ := set $sums "checksum/secret" (include "auth.secretData" .root | sha256sum) }}
  {{- end }}
  {{- toYaml (merge $sums (.annotations | default dict) .root.Values.podAnnotations .root.Values.commonAnnotations) | nindent 2 }}
{{- end }}

{{/* Takes {to, ports: [{protocol, port}]} of an egress rule. */}}
{{- define "auth.egressRule" -}}
- ports:
    {{- toYaml .ports | nindent 4 }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "auth.egressDnsAndDatabase" -}}
{{ include "auth.egressRule" (dict "to" .Values.networkPolicy.dns.to "ports" (list (dict "protocol" "UDP" "port" 53) (dict "protocol" "TCP" "port" 53))) }}
{{ include "auth.egressRule" (dict "to" .Values.networkPolicy.database.to "ports" (list (dict "protocol" "TCP" "port" .Values.networkPolicy.database.port))) }}
{{- end }}
