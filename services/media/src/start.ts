import { readSettings } from '@services/common/process/read-settings'
import { readConfig } from './config.ts'

export const startUp = (how?: { toStderr?: boolean; quietly?: boolean }) => readSettings('media', readConfig, how)
