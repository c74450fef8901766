import { boolean, oneOf, parsed, port, text, type Values, type Variables } from '@services/common/config'

export const telemetryVariables = {
  TRACING_ENABLED: boolean('Export traces.', { default: 'false' }),
  TRACING_EXPORTER: oneOf(['opentelemetry'], 'Where traces go; the `OTEL_*` variables say how.', {
    default: 'opentelemetry',
  }),
  METRICS_ENABLED: boolean('Export metrics.', { default: 'false' }),
  METRICS_EXPORTER: oneOf(['opentelemetry', 'prometheus'], 'Pushed by OTLP, or scraped.', { default: 'opentelemetry' }),
  OTEL_EXPORTER_PROMETHEUS_HOST: text('Address of the Prometheus endpoint.', { default: '0.0.0.0' }),
  OTEL_EXPORTER_PROMETHEUS_PORT: port('Port of the Prometheus endpoint, served at `/`.', { default: '9100' }),
  DEBUG: parsed(
    'boolean',
    'More detail from the telemetry SDK.',
    { default: 'false' },
    // DEBUG is also the switch of other libraries, which put names in it: only true is ours.
    (value) => /^(true|1)$/i.test(value),
  ),
} satisfies Variables

export const telemetrySettings = (values: Values<typeof telemetryVariables>) => ({
  tracing: values.TRACING_ENABLED,
  metrics: values.METRICS_ENABLED ? values.METRICS_EXPORTER : (false as const),
  prometheus: { host: values.OTEL_EXPORTER_PROMETHEUS_HOST, port: values.OTEL_EXPORTER_PROMETHEUS_PORT },
  debug: values.DEBUG,
})
