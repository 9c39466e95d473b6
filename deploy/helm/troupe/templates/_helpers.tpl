{{- define "troupe.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "troupe.selector" -}}
app.kubernetes.io/name: troupe
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "troupe.labels" -}}
{{ include "troupe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "troupe.secret" -}}
{{- .Values.secret.existing | default (include "troupe.name" .) -}}
{{- end -}}

{{- define "troupe.scheme" -}}
{{- if .Values.tls.secret }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* The text of a variable. Helm reads numbers as floats: whole ones are written with all their digits, and what it may have rounded is refused. */}}
{{- define "troupe.text" -}}
{{- if kindIs "string" .value -}}
{{- .value -}}
{{- else if and (kindIs "float64" .value) (or (gt .value 9007199254740991.0) (lt .value -9007199254740991.0)) -}}
{{- fail (printf "env.%s is a number with more digits than Helm keeps: write it in quotes" .key) -}}
{{- else -}}
{{- toJson .value -}}
{{- end -}}
{{- end -}}
