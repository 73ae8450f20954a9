#!/bin/sh
{{ template "greeting" . -}}
hostname {{ .Instance.Hostname }}
