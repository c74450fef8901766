import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

export type { Browser, Page } from 'playwright-core'

/** Debian's; where there is none tests with it are skipped, but not where one is named. */
const CHROMIUM = process.env.CHROMIUM_PATH || '/usr/bin/chromium'
export const isBrowserThere = Boolean(process.env.CHROMIUM_PATH) || existsSync(CHROMIUM)

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath: CHROMIUM, args: QUIET })
