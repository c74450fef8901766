import { variables } from '../../services/media/src/config.ts'
import type { ChartFacts } from './chart-facts.ts'

export const chart: ChartFacts = {
  name: 'media',
  prefix: 'MEDIA_',
  variables,
  decided: [
    ...['PORT', 'WORKERS_ENABLED', 'MIGRATE_ON_START', 'OTEL_EXPORTER_PROMETHEUS_PORT'],
    ...['STORAGE', 'BLOBS_DIR', 'WORK_DIR'],
    ...['S3_BUCKET', 'S3_REGION', 'S3_ENDPOINT', 'S3_PREFIX', 'S3_FORCE_PATH_STYLE'],
  ],
}
