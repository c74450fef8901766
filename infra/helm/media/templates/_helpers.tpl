{{/* What is too long for the suffixes to fit, or has dots, which names of Services may not have, ends in a hash: so that two names stay two. */}}
{{- define "media.fullname" -}}
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

{{- define "media.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "media.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "media.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* That of the Job runs before the release's own is there. */}}
{{- define "media.migrationServiceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- printf "%s-migrate" (include "media.fullname" .) }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "media.image" -}}
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
{{- define "media.selectorLabels" -}}
app.kubernetes.io/name: {{ include "media.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end }}

{{/* Takes {root, component}. The chart's labels win over common ones: selectors rely on them. */}}
{{- define "media.labels" -}}
{{- $own := include "media.selectorLabels" . | fromYaml }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- $_ := set $own "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_" | trunc 63) }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- toYaml (merge $own .root.Values.commonLabels) }}
{{- end }}

{{/* Takes {root, annotations}; writes nothing where there are none. */}}
{{- define "media.annotations" -}}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
{{- printf "annotations:\n%s" (toYaml . | indent 2) | nindent 2 }}
{{- end }}
{{- end }}

{{/* A value as the text of an environment variable. Numbers by way of JSON, or large ones would come out as 1.5e+08. */}}
{{- define "media.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{/* The data of the ConfigMap. JSON's strings are YAML's, whatever is in them. */}}
{{- define "media.configData" -}}
{{- range $name, $value := .Values.config }}
{{- $text := include "media.text" $value }}
{{- if and (not (kindIs "invalid" $value)) (ne $text "") }}
{{ $name }}: {{ toJson $text }}
{{- end }}
{{- end }}
{{- end }}

{{- define "media.secretData" -}}
{{- range $name, $value := .Values.secrets }}
{{- $text := include "media.text" $value }}
{{- if and (not (kindIs "invalid" $value)) (ne $text "") }}
{{ $name }}: {{ b64enc $text | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Takes {root, name, isSecret}: writes `yes` where the pods are given the variable, or may be from where the chart cannot see. A plain
setting is not expected in the operator's Secret: one that was forgotten should be noticed here, not by pods that do not start.
*/}}
{{- define "media.isGiven" -}}
{{- $values := .root.Values }}
{{- $unseen := or $values.extraEnvFrom (and .isSecret $values.existingSecret) }}
{{- $own := or (get $values.config .name) (and (not $values.existingSecret) (get $values.secrets .name)) }}
{{- $named := false }}
{{- range $values.extraEnv }}
{{- if eq .name $.name }}{{ $named = true }}{{ end }}
{{- end }}
{{- if or $unseen $own $named }}yes{{ end }}
{{- end }}

{{/* Writes `yes` where there is never more than one pod of the service. */}}
{{- define "media.isOnePod" -}}
{{- if not (or .Values.worker.enabled .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) }}yes{{ end }}
{{- end }}

{{/* Writes `yes` where the volume can be in one pod only: the old one must go before a new one comes. */}}
{{- define "media.isOneAtATime" -}}
{{- if and (eq .Values.storage.type "disk") (ne .Values.storage.disk.accessMode "ReadWriteMany") }}yes{{ end }}
{{- end }}

{{/* Takes {resources, name}: writes `yes` where something is requested. Kubernetes takes a limit for a request that is not there. */}}
{{- define "media.requests" -}}
{{- range list "requests" "limits" }}
{{- if get (get ($.resources | default dict) . | default dict) $.name }}yes{{ end }}
{{- end }}
{{- end }}

{{/* Stops the rendering where the service could not start, with a sentence that says which value is missing. */}}
{{- define "media.check" -}}
{{- if regexMatch "^[^a-z]" (include "media.fullname" .) }}
{{- fail "fullnameOverride is required where a release's name begins with a digit: names of Services begin with a letter." }}
{{- end }}
{{- if not (include "media.isGiven" (dict "root" . "name" "MEDIA_BASE_URL")) }}
{{- fail "config.MEDIA_BASE_URL is required: the URL under which this service is reachable." }}
{{- end }}
{{- if not (include "media.isGiven" (dict "root" . "name" "MEDIA_DATABASE_URL" "isSecret" true)) }}
{{- fail "existingSecret is required, the name of a Secret with the key MEDIA_DATABASE_URL (or secrets.MEDIA_DATABASE_URL itself): a PostgreSQL connection string." }}
{{- end }}
{{- if eq .Values.storage.type "s3" }}
{{- if not (or .Values.storage.s3.bucket (include "media.isGiven" (dict "root" . "name" "MEDIA_S3_BUCKET"))) }}
{{- fail "storage.s3.bucket is required with storage.type s3: the name of a bucket that exists." }}
{{- end }}
{{- else if and (ne .Values.storage.disk.accessMode "ReadWriteMany") (not (include "media.isOnePod" .)) }}
{{- fail (printf "storage.disk.accessMode is %s, a volume for one pod: make it ReadWriteMany, or set worker.enabled to false, replicaCount to 1 and autoscaling.enabled to false." .Values.storage.disk.accessMode) }}
{{- end }}
{{- if and .Values.worker.keda.enabled .Values.worker.autoscaling.enabled }}
{{- fail "worker.keda.enabled and worker.autoscaling.enabled are both true: one of them can set the number of pods." }}
{{- end }}
{{- if and .Values.worker.keda.enabled (not .Values.worker.enabled) }}
{{- fail "worker.keda.enabled needs worker.enabled: there would be nothing to scale." }}
{{- end }}
{{- if and .Values.worker.keda.enabled (not .Values.worker.keda.secretName) (not .Values.existingSecret) (not .Values.secrets.MEDIA_DATABASE_URL) }}
{{- fail "worker.keda.secretName is required: the Secret in which KEDA finds the connection string, under worker.keda.secretKey." }}
{{- end }}
{{- range $name, $scaling := dict "worker.keda" .Values.worker.keda "worker.autoscaling" .Values.worker.autoscaling }}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) }}
{{- fail (printf "%s.minReplicas is above %s.maxReplicas." $name $name) }}
{{- end }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas." }}
{{- end }}
{{- if and .Values.worker.autoscaling.enabled (not (include "media.requests" (dict "resources" .Values.worker.resources "name" "cpu"))) }}
{{- fail "worker.autoscaling.targetCPUUtilizationPercentage needs worker.resources.requests.cpu: it is a share of that." }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (not (or .targetCPUUtilizationPercentage .targetMemoryUtilizationPercentage)) }}
{{- fail "autoscaling.targetCPUUtilizationPercentage and autoscaling.targetMemoryUtilizationPercentage are both 0: there is nothing to scale by." }}
{{- end }}
{{- end }}
{{- if .Values.autoscaling.enabled }}
{{- range $resource, $target := dict "cpu" "targetCPUUtilizationPercentage" "memory" "targetMemoryUtilizationPercentage" }}
{{- if and (get $.Values.autoscaling $target) (not (include "media.requests" (dict "resources" $.Values.resources "name" $resource))) }}
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
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.hosts is required with ingress.enabled: a list of {host, paths}." }}
{{- end }}
{{- end }}

{{/* Takes {root, component, configName, secretName}: what a container knows. */}}
{{- define "media.environment" -}}
envFrom:
  - configMapRef:
      name: {{ .configName | quote }}
  {{- if or .root.Values.existingSecret (include "media.secretData" .root) }}
  - secretRef:
      name: {{ .secretName | quote }}
  {{- end }}
  {{- with .root.Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  - name: MEDIA_PORT
    value: {{ .root.Values.containerPorts.http | toJson | quote }}
  - name: MEDIA_WORKERS_ENABLED
    value: {{ not .root.Values.worker.enabled | toJson | quote }}
  # Migrations are the Job's work where there is one.
  - name: MEDIA_MIGRATE_ON_START
    value: {{ not .root.Values.migration.enabled | toJson | quote }}
  {{- with .root.Values.storage }}
  - name: MEDIA_STORAGE
    value: {{ .type }}
  {{- if eq .type "disk" }}
  - name: MEDIA_BLOBS_DIR
    value: /var/lib/media/blobs
  {{- else }}
  {{- range $name, $value := dict "BUCKET" .s3.bucket "REGION" .s3.region "ENDPOINT" .s3.endpoint "PREFIX" .s3.prefix }}
  {{- with $value }}
  - name: MEDIA_S3_{{ $name }}
    value: {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- if not (kindIs "invalid" .s3.forcePathStyle) }}
  - name: MEDIA_S3_FORCE_PATH_STYLE
    value: {{ toJson .s3.forcePathStyle | quote }}
  {{- end }}
  {{- end }}
  {{- end }}
  # On a disk the same volume: a file that has come in is moved to its place, not copied.
  - name: MEDIA_WORK_DIR
    value: /var/lib/media/work
  {{- if .root.Values.metrics.enabled }}
  - name: MEDIA_METRICS_ENABLED
    value: "true"
  - name: MEDIA_METRICS_EXPORTER
    value: prometheus
  - name: MEDIA_OTEL_EXPORTER_PROMETHEUS_PORT
    value: {{ .root.Values.containerPorts.metrics | toJson | quote }}
  {{- end }}
  {{- with .root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "media.secretName" -}}
{{- default (include "media.fullname" .) .Values.existingSecret }}
{{- end }}

{{/* Takes {root, name, override}: of the worker its own, or that of all pods. */}}
{{- define "media.podChoice" -}}
{{- with (get (.override | default dict) .name) | default (get .root.Values .name) }}
{{- if kindIs "string" . }}
{{ $.name }}: {{ toJson . }}
{{- else }}
{{ $.name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes {root, override}. The ServiceAccount's token is nobody's business, and a Service called media must not become a variable MEDIA_PORT. */}}
{{- define "media.podBasics" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- if not (kindIs "invalid" .root.Values.hostUsers) }}
hostUsers: {{ .root.Values.hostUsers }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "string" . }}{{ toJson . }}{{ else }}{{ toJson .name }}{{ end }}
  {{- end }}
{{- end }}
{{- with .root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $name := list "priorityClassName" "nodeSelector" "tolerations" "affinity" }}
{{- include "media.podChoice" (dict "root" $.root "override" $.override "name" $name) }}
{{- end }}
{{- end }}

{{/* Takes {root, component}. */}}
{{- define "media.placement" -}}
{{- if .root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range .root.Values.topologySpreadConstraints }}
  - {{ toYaml . | nindent 4 | trim }}
    {{- if not (hasKey . "labelSelector") }}
    labelSelector:
      matchLabels:
        {{- include "media.selectorLabels" $ | nindent 8 }}
    {{- if not (hasKey . "matchLabelKeys") }}
    matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "media.container" -}}
image: {{ include "media.image" . | toJson }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of every pod. */}}
{{- define "media.commonVolumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "media.commonVolumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.tmpSizeLimit }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "media.volumeMounts" -}}
- name: storage
  mountPath: /var/lib/media
{{ include "media.commonVolumeMounts" . }}
{{- end }}

{{- define "media.volumes" -}}
- name: storage
  {{- if eq .Values.storage.type "disk" }}
  persistentVolumeClaim:
    claimName: {{ .Values.storage.disk.existingClaim | default (include "media.fullname" .) | quote }}
  {{- else if .Values.storage.work.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.storage.work.existingClaim | quote }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.storage.work.sizeLimit }}
    {{- with .Values.storage.work.medium }}
    medium: {{ . | quote }}
    {{- end }}
  {{- end }}
{{ include "media.commonVolumes" . }}
{{- end }}

{{/* Takes {root, component, annotations, labels}: metadata of pods, with checksums, so that changed settings roll them. */}}
{{- define "media.podMetadata" -}}
labels:
  {{- $own := include "media.selectorLabels" . | fromYaml }}
  {{- toYaml (merge $own (.labels | default dict) .root.Values.podLabels .root.Values.commonLabels) | nindent 2 }}
annotations:
  {{- $sums := dict "checksum/config" (include "media.configData" .root | sha256sum) }}
  {{- if not .root.Values.existingSecret }}
  {{- $_ := set $sums "checksum/secret" (include "media.secretData" .root | sha256sum) }}
  {{- end }}
  {{- toYaml (merge $sums (.annotations | default dict) .root.Values.podAnnotations .root.Values.commonAnnotations) | nindent 2 }}
{{- end }}

{{/* Takes {to, ports: [{protocol, port}]} of an egress rule. */}}
{{- define "media.egressRule" -}}
- ports:
    {{- toYaml .ports | nindent 4 }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "media.egressDnsAndDatabase" -}}
{{ include "media.egressRule" (dict "to" .Values.networkPolicy.dns.to "ports" (list (dict "protocol" "UDP" "port" 53) (dict "protocol" "TCP" "port" 53))) }}
{{ include "media.egressRule" (dict "to" .Values.networkPolicy.database.to "ports" (list (dict "protocol" "TCP" "port" .Values.networkPolicy.database.port))) }}
{{- end }}

{{/*
Clips under way and those that may begin now; not those that wait for room on a disk or before a further try. Those under way
count, or the pods that make them would be taken away.
*/}}
{{- define "media.queueQuery" -}}
{{- $namespace := include "media.text" (get .Values.config "MEDIA_DB_NAMESPACE") -}}
select count(*) from {{ with $namespace }}{{ . }}_{{ end }}media_queue.job where name = 'transcode' and (state = 'active' or (state < 'active' and start_after <= now()))
{{- end }}
