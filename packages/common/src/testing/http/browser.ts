import { type Browser, chromium } from 'playwright-core'
import { CHROMIUM } from '../run/needs.ts'

export type { Browser, Page, Route } from 'playwright-core'

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Launches Chromium; tests that need it have the tag `chromium`. Without UTF-8 it saves files under other names. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: QUIET,
    env: { ...process.env, LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8' },
  })
