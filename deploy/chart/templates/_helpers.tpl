{{- define "liftlock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "liftlock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "liftlock.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "liftlock.selectorLabels" -}}
app.kubernetes.io/name: {{ include "liftlock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "liftlock.labels" -}}
{{ include "liftlock.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "liftlock.serviceAccount" -}}
{{- default (ternary (include "liftlock.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/* webhooksApart: "true" where deliveries come in at a port of their own. */}}
{{- define "liftlock.webhooksApart" -}}
{{- if dig "webhooks" "listen" "" .Values.config }}true{{ end -}}
{{- end -}}

{{/* port ADDRESS is its port as a number. */}}
{{- define "liftlock.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}

{{/* config is the server's file. What the chart adds goes behind what was given. */}}
{{- define "liftlock.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $name := include "liftlock.fullname" . -}}
{{- $hosts := list (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s" $name .Release.Namespace) -}}
{{- $_ := set $config "hosts" (concat (default list $config.hosts) $hosts | uniq) -}}
{{- if and (eq .Values.database "postgres") (not (hasKey $config "store")) (not (hasKey $config "storeFile")) -}}
{{- $_ := set $config "storeFile" "/etc/liftlock/secrets/store" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* inCluster: the Argo CDs of config that are reached with the pod's own account, as YAML. */}}
{{- define "liftlock.inCluster" -}}
{{- $out := list -}}
{{- range .Values.config.argocd -}}
{{- $alone := and (hasKey . "api") (not (hasKey . "kubernetes")) -}}
{{- if not (or $alone (dig "kubernetes" "kubeconfig" "" .) (dig "kubernetes" "context" "" .)) -}}
{{- $out = append $out . -}}
{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{- define "liftlock.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* check refuses values that contradict each other. */}}
{{- define "liftlock.check" -}}
{{- $config := .Values.config -}}
{{- if eq .Values.database "sqlite" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail (printf "replicas is %d, and SQLite is for one: set database to postgres and give the Secret %s the key store, or replicas to 1" (int .Values.replicas) .Values.secretName) -}}
{{- end -}}
{{- if or (hasKey $config "storeFile") (hasPrefix "postgres" (default "" $config.store)) -}}
{{- fail "config names a PostgreSQL, and database is sqlite: set database to postgres" -}}
{{- end -}}
{{- else if hasPrefix "sqlite" (default "" $config.store) -}}
{{- fail "config.store names SQLite, and database is postgres: leave config.store out, or set database to sqlite" -}}
{{- end -}}
{{- if hasPrefix "127." (default "127.0.0.1:8080" $config.listen) -}}
{{- fail "config.listen is a loopback address, which no Service reaches: set it to 0.0.0.0:8080" -}}
{{- end -}}
{{- end -}}
