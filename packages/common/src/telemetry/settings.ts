import { boolean, oneOf, parsed, port, text, type Values, type Variables } from '../config/variables.ts'

/**
 * Variables of metrics; each service declares `TRACING_ENABLED` itself, and has its own default of `prometheusPort`.
 */
export const metricsVariables = (prometheusPort: string) =>
  ({
    METRICS_ENABLED: boolean('Export metrics.', { default: 'false' }),
    METRICS_EXPORTER: oneOf(['opentelemetry', 'prometheus'], 'Pushed by OTLP, or scraped.', {
      default: 'opentelemetry',
    }),
    OTEL_EXPORTER_PROMETHEUS_HOST: text('Address of the Prometheus endpoint.', { default: '0.0.0.0' }),
    OTEL_EXPORTER_PROMETHEUS_PORT: port('Port of the Prometheus endpoint, served at `/`.', { default: prometheusPort }),
    DEBUG: parsed(
      'boolean',
      'More detail from the telemetry SDK.',
      { default: 'false' },
      // Other libraries read names from DEBUG; only true is ours.
      (value) => /^(true|1)$/i.test(value),
    ),
  }) satisfies Variables

type TelemetryValues = Values<ReturnType<typeof metricsVariables>> & { TRACING_ENABLED: boolean }

export const telemetrySettings = (values: TelemetryValues) => ({
  tracing: values.TRACING_ENABLED,
  metrics: values.METRICS_ENABLED ? values.METRICS_EXPORTER : (false as const),
  prometheus: { host: values.OTEL_EXPORTER_PROMETHEUS_HOST, port: values.OTEL_EXPORTER_PROMETHEUS_PORT },
  debug: values.DEBUG,
})
