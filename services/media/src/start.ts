import { readSettings } from '@services/common/process/read-settings'
import { type Config, readConfig } from './config.ts'

/** Variable that changes each port, for the error of a port in use. */
export const portVariables = ({ server, telemetry }: Config): Record<number, string> => ({
  [telemetry.prometheus.port]: 'MEDIA_OTEL_EXPORTER_PROMETHEUS_PORT',
  [server.port]: 'MEDIA_PORT',
})

export const startUp = (how?: { toStderr?: boolean }) => readSettings('media', readConfig, how)
